"""Which line of a compiler's log is the message, and what is said beside it."""

import pytest

from evaluator.diagnosis import first_error, remarks, units_to_locate, with_places

ASSERTED = (
    "ptxboard_entry.cu(35): error: static assertion failed with "
    '"entry signature: run takes 4 parameters (a, b, c, stream), seen 3"\n'
)
PTX = """\
.visible .entry _Z1kPf(
{
	.loc	1 5 0
	.loc	2 3 3, function_name $L__info_string0, inlined_at 1 7 3
	// begin inline asm
	mov.u32 %f1, %f2;
	// end inline asm
}
	.file	1 "/build/src/kernel.cu"
	.file	2 "/build/src/tools.cuh"
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("k.cu(1): warning: x\nk.cu(2): error: y\nk.cu(3): error: z\n", "k.cu(2): error: y"),
        ("k.cu:1:2: warning: #warning an error: no\nk.cu:2:1: error: y\n", "k.cu:2:1: error: y"),
        ("k.cu(5): warning #177-D: unused\n  if (x) goto error;\nk.cu(9): error: y\n",
         "k.cu(9): error: y"),
        ("all is well\n", ""),
        ("note: max_error_count is 3\n", ""),
        ("/usr/bin/ld: two.o: in function `f':\ntwo.cpp:(.text+0x10): undefined reference to `g'\n",
         "two.cpp:(.text+0x10): undefined reference to `g'"),
    ],
)  # fmt: skip
def test_the_first_error_is_neither_a_warning_nor_quoted_source_nor_context(log, line):
    assert first_error(log) == line


def test_a_wrong_prototype_is_told_in_our_words():
    assert first_error(ASSERTED) == "run takes 4 parameters (a, b, c, stream), seen 3"


def test_an_error_of_the_author_comes_before_what_it_does_to_our_check():
    assert first_error('kernel.cu(1): error: identifier "import" is undefined\n' + ASSERTED) == (
        'kernel.cu(1): error: identifier "import" is undefined'
    )


def test_an_entry_point_that_is_no_single_function_is_told_so():
    log = (
        'ptxboard_entry.cu(32): error: cannot determine which instance of "run" is intended\n'
        + ASSERTED.replace("static assertion failed with", "incomplete type")
    )
    assert first_error(log) == (
        "run takes 4 parameters (a, b, c, stream), exactly one function and no template; "
        'seen: cannot determine which instance of "run" is intended'
    )


@pytest.mark.parametrize(
    ("log", "hint"),
    [
        ("ptxas fatal   : Unresolved extern function '_Z1ff'\n", "include the file that defines"),
        ("a.cpp:(.text+0x10): multiple definition of `run'\n", "name files that others include"),
        ("kernel.cu(1): error: unrecognized token\n  ```cuda\n", "Markdown fence"),
        ("k.cpp:1:1: error: stray\n    1 | ```cpp\n      | ^\n", "Markdown fence"),
    ],
)
def test_a_known_mistake_gets_a_hint(log, hint):
    assert hint in first_error(log)


def test_remarks_that_cost_speed_are_found_once_each():
    log = (
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unknown\n"
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unknown\n"
        "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async serialized\n"
        "ptxas info    : 0 bytes gmem\n"
    )
    assert remarks(log) == (
        "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unknown",
        "(C7515) Potential Performance Loss: wgmma.mma_async serialized",
    )


def test_a_line_of_ptx_is_led_back_to_the_authors_line_and_instruction():
    log = "ptxas ptxboard_entry.ptx, line 6; error   : Arguments mismatch\n"
    assert units_to_locate(log) == ("ptxboard_entry",)
    assert with_places(log, "ptxboard_entry", PTX) == (
        "ptxas ptxboard_entry.ptx, line 6; error   : Arguments mismatch"
        " at /build/src/tools.cuh:3: mov.u32 %f1, %f2;\n"
    )


@pytest.mark.parametrize(
    "log", ["ptxas other.ptx, line 6; error   : x\n", "ptxas ptxboard_entry.ptx, line 99; error\n"]
)
def test_a_line_of_another_unit_or_beyond_the_end_stays_as_it_is(log):
    assert with_places(log, "ptxboard_entry", PTX) == log
