"""What runs must be what was compiled here: nothing carried as data, nothing launched beside it."""

import subprocess
from collections.abc import Callable

import pytest

from evaluator.device_code import foreign_device_code
from evaluator.judge.activity import Activity, Window, attribute
from evaluator.records.evidence import TimingEvidence
from evaluator.records.verdicts import Stage, Verdict
from evaluator.stages import compilation, sass, timing
from evaluator.stages.timing import judged_kernels
from tests.evaluator.conftest import trick


@pytest.fixture
def library_with(tmp_path):
    """A real shared library that carries these bytes in a section of this name."""

    def make(data: bytes, section: str) -> bytes:
        (tmp_path / "data.bin").write_bytes(data)
        text = f'asm(".section {section},\\"a\\"\\n.incbin \\"{tmp_path}/data.bin\\"\\n.text\\n");'
        (tmp_path / "library.c").write_text(text + "\n")
        command = ["gcc", "-shared", "-o", tmp_path / "library.so", tmp_path / "library.c"]
        subprocess.run(command, check=True)
        return (tmp_path / "library.so").read_bytes()

    return make


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("a cubin", b"\x7fELF\x02\x01" + bytes(10) + b"\x02\x00\xbe\x00"),
        ("a fatbin", b"\x50\xed\x55\xba\x01\x00\x10\x00"),
        ("PTX text", b"//\n.version 8.0\n// a remark\n.target sm_90a\n.address_size 64\n"),
    ],
)
def test_it_finds_device_code_among_data_and_not_where_the_compiler_puts_it(
    library_with, kind, data
):
    carried = library_with(data, ".rodata")
    at = carried.index(data[data.index(b".version") :] if kind == "PTX text" else data)
    assert foreign_device_code(carried) == (f"{kind} at offset {at}",)
    assert foreign_device_code(library_with(data, ".nv_fatbin")) == ()


def test_a_library_whose_headers_cannot_be_read_is_searched_whole():
    data = b"\x7fELF" + bytes(12) + b".version 8.0\n.target sm_90\n"
    assert foreign_device_code(data) == ("PTX text at offset 16",)
    assert foreign_device_code(b"") == ()


def test_words_of_ptx_are_no_device_code(library_with):
    text = b"write .version first, then .target sm_90; .version 8.0 alone is no program"
    assert foreign_device_code(library_with(text, ".rodata")) == ()


def test_a_host_binary_inside_is_no_device_code(library_with):
    inner = library_with(b"nothing", ".rodata")
    assert foreign_device_code(library_with(inner, ".rodata")) == ()


def test_every_kernel_of_a_build_is_known_by_its_mangled_name(bench, make_work):
    work = make_work(trick("honest_plain"))
    for stage in (compilation, sass):
        work = work.with_result(stage.run(work, bench))
    assert judged_kernels(work) == {"_Z4gemmPK13__nv_bfloat16S1_PS_"}


def test_without_a_disassembly_nothing_is_said_about_kernels(make_work):
    assert judged_kernels(make_work(trick("honest_plain"))) is None


@pytest.fixture
def run(recorded) -> Callable[..., TimingEvidence]:
    """A recorded run in which kernels of these names were seen."""
    value = recorded("timing/h200_gemm_wgmma.json")["evidence"]
    return lambda *symbols: TimingEvidence.model_validate({**value, "kernel_symbols": symbols})


def test_a_run_that_launches_the_judged_kernels_passes(run):
    seen = timing.judge(run("_Z4gemmv"), known_kernels=frozenset({"_Z4gemmv", "_Z5extrav"}))
    assert seen.verdict is Verdict.PASSED


def test_a_kernel_from_elsewhere_is_named_and_banned(run):
    seen = timing.judge(run("_Z4gemmv", "nvjet_tst"), known_kernels=frozenset({"_Z4gemmv"}))
    assert (seen.stage, seen.verdict) == (Stage.TIMING, Verdict.BANNED_LIBRARY)
    assert seen.message.startswith("kernel nvjet_tst was launched, but it is not in the judged")
    assert seen.evidence.speedup is None


def test_a_name_that_was_cut_is_known_by_its_beginning_and_no_other_is(run):
    long = "k" * 2000
    cut = long[: timing.NAME_CHARACTERS]
    assert timing.judge(run(cut), known_kernels=frozenset({long})).verdict is Verdict.PASSED
    other = "x" * timing.NAME_CHARACTERS
    banned = timing.judge(run(other), known_kernels=frozenset({long}))
    assert banned.verdict is Verdict.BANNED_LIBRARY


def test_every_kernel_that_a_host_reports_is_kept_by_name_and_copies_are_not():
    windows = [Window(label="a", start_ns=1_000, end_ns=2_000)]
    seen = [("kernel", "k", 1_100), ("kernel", "beside", 900_000), ("memcpy", "memcpy", 1_200)]
    records = [
        Activity(kind=kind, name=name, start_ns=start_ns, end_ns=start_ns + 10)
        for kind, name, start_ns in seen
    ]
    assert attribute(windows, records).kernel_symbols == {"k", "beside"}
