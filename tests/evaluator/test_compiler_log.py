"""What is kept of a compiler's words, and what is read out of them."""

from pathlib import Path

import pytest

from evaluator.compiler_log import (
    LOG_BYTES,
    clean,
    kernel_resources,
    ran_out_of_memory,
    ran_out_of_time,
)

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90a'
ptxas info    : Function properties for _Z1aPf
    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Function properties for _ZN6helperEv
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function '_Z1bPf' for 'sm_90a'
ptxas info    : Function properties for _Z1bPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""


def cleaned(text, **options):
    given = {
        "already_truncated": False,
        "folders": (Path("/opt/env/nvidia/cu13"), Path("/usr")),
        "workspace": Path("/tmp/ptxboard-x1"),
        **options,
    }
    return clean(text, **given)


def test_it_takes_the_paths_of_this_machine_out_and_leaves_the_authors():
    log = cleaned(
        "/tmp/ptxboard-x1/src/a/k.cu(3): error: x\n./k.cu(4): warning\n../ptxboard_entry.cu\n"
        "/opt/env/nvidia/cu13/include/cuda_fp16.h(5): note\n/usr/include/stdio.h:1: note\n"
        "ptxas /tmp/tmpxft_00000002_00000000-6_k.ptx, line 9; error\n/tmp/ccAb12xY.o: in function\n"
    )
    assert log.text == (
        "a/k.cu(3): error: x\nk.cu(4): warning\nptxboard_entry.cu\n"
        "<cu13>/include/cuda_fp16.h(5): note\n/usr/include/stdio.h:1: note\n"
        "ptxas k.ptx, line 9; error\no: in function\n"
    )
    assert log.truncated is False


def test_a_log_of_exactly_the_limit_is_not_cut():
    assert cleaned("x" * LOG_BYTES).truncated is False


def test_a_longer_log_keeps_errors_with_the_lines_after_them():
    noise = "".join(f"note {number}: {'n' * 90}\n" for number in range(1000))
    log = cleaned(noise + "k.cu(7): error: bad\n  the line\n  ^\n" + noise)
    lines = log.text.splitlines()
    assert lines[:4] == [
        "[log cut: lines with errors first]", "k.cu(7): error: bad", "  the line", "  ^",
    ]  # fmt: skip
    assert lines[4].startswith("note 0:")
    assert len(log.text.encode()) <= LOG_BYTES
    assert (log.truncated, log.byte_count) == (True, len(noise) * 2 + 35)


def test_a_flood_of_warnings_does_not_drown_what_ptxas_says_of_the_kernels():
    noise = "".join(f"k.cu({number}): warning: {'n' * 90}\n" for number in range(1000))
    [first, second] = kernel_resources(cleaned(noise + PTXAS).text)
    assert (first.registers, second.registers) == (255, 10)


def test_one_endless_line_is_cut_too():
    log = cleaned("k.cu(1): error: " + "t<" * LOG_BYTES)
    assert len(log.text.encode()) <= LOG_BYTES
    assert log.text.splitlines()[1].startswith("k.cu(1): error: t<t<")


def test_what_was_cut_before_stays_marked():
    assert cleaned("short", already_truncated=True).truncated is True


@pytest.mark.parametrize(
    ("log", "of_time", "of_memory"),
    [
        ("nvcc error   : 'ptxas' died due to signal 24 \n", True, False),
        ("sh: line 1: 12 CPU time limit exceeded ptxas\n", True, False),
        ("virtual memory exhausted: Cannot allocate memory\n", False, True),
        ("cc1plus: out of memory allocating 65536 bytes\n", False, True),
        ("k.cu(3): error: expected a declaration\n", False, False),
        ("k.cu(3): warning: memory is written in time\n", False, False),
        ("k.cu:3:2: error: #error CPU time limit exceeded\n", False, False),
        ('k.cu(3): error: x\n  if (!p) puts("out of memory");\n', False, False),
    ],
)
def test_a_compiler_that_ran_out_of_time_or_memory_is_known_by_its_words(log, of_time, of_memory):
    assert (ran_out_of_time(log), ran_out_of_memory(log)) == (of_time, of_memory)


def test_resources_are_read_for_each_kernel_and_not_for_device_functions():
    first, second = kernel_resources(PTXAS)
    assert first.model_dump(exclude_none=True) == {
        "name": "_Z1aPf",
        "registers": 255,
        "spill_store_bytes": 24,
        "spill_load_bytes": 32,
        "stack_bytes": 16,
        "static_shared_bytes": 1024,
    }
    assert (second.name, second.registers, second.static_shared_bytes) == ("_Z1bPf", 10, 0)
