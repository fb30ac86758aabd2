"""Mistakes that authors really make, built with the real compilers: each gets words to act on."""

import subprocess
import sys

import pytest

from evaluator.records.verdicts import Verdict
from evaluator.stages import compilation, policy
from evaluator.symbols import parse

RUN = 'extern "C" void run(const void* a, const void* b, void* c, cudaStream_t s) {%s}\n'
LAUNCH = RUN % "k<<<1, 32, 0, s>>>((float*)c);"


@pytest.fixture
def build(bench, make_work):
    return lambda text, **options: compilation.run(make_work(text, **options), bench)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```cuda\n" + RUN % "" + "```\n", "Markdown fence"),
        ("import torch\n", 'identifier "import" is undefined'),
        ("template <int n> void run() {}\n", "exactly one function and no template"),
        ('void run(float) {}\nextern "C" void run(int) {}\n', "exactly one function"),
        ('extern "C" int missing(int);\n' + RUN % "missing(1);", "undefined symbol missing:"),
        ("int missing(int);\n" + RUN % "missing(1);", "undefined symbol missing(int):"),
        ("extern __device__ float f();\n__global__ void k(float* c) { *c = f(); }\n" + LAUNCH,
         "include the file that defines it"),
        ("#error CPU time limit exceeded\n", "#error CPU time limit exceeded"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_compile_error_that_says_what_to_do(build, text, message):
    result = build(text)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert message in result.message


def test_an_error_in_inline_ptx_names_the_line_of_the_kernel(build):
    text = (
        "__global__ void k(float* c) {\n"
        "  float f;\n"
        '  asm volatile("mov.u32 %0, %1;" : "=f"(f) : "f"(1.f));\n'
        "  *c = f;\n"
        "}\n" + LAUNCH
    )
    result = build(text)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "Arguments mismatch for instruction 'mov' at kernel.cu:3: mov.u32 %f1" in result.message


def test_an_instruction_of_another_architecture_names_line_instruction_and_target(build):
    text = '__global__ void k(float*) {\n  asm("tcgen05.wait::ld.sync.aligned;");\n}\n' + LAUNCH
    message = build(text).message
    assert "'tcgen05.wait' not supported on .target 'sm_90a' at kernel.cu:2:" in message


def test_a_second_definition_in_another_file_is_named(build):
    result = build('#include "tools.cu"\n' + RUN % "f();", files={"tools.cu": "void f() {}\n"})
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "multiple definition of `f()'" in result.message
    assert "name files that others include .cuh or .h" in result.message
    assert "tmpxft" not in result.message


def test_a_remark_of_ptxas_that_costs_speed_stands_in_the_message(build):
    text = (
        '__global__ void k(float* c) {\n  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");\n'
    )
    result = build(text + "  c[threadIdx.x] = 1;\n}\n" + LAUNCH)
    assert result.verdict is Verdict.PASSED
    assert "(C7508) Potential Performance Loss: 'setmaxnreg' ignored" in result.message


@pytest.mark.parametrize("keyword", ["static ", "inline "])
def test_an_entry_point_that_stays_inside_is_told_how_to_come_out(build, keyword):
    function = (RUN % "").removeprefix('extern "C"')
    result = build(f'extern "C" {{ {keyword}{function} }}\n')
    assert result.verdict is Verdict.ENTRY_POINT_MISSING
    assert "neither static nor inline" in result.message


def test_the_drivers_symbols_are_bound_when_the_library_is_loaded(build, tmp_path):
    """With a driver of our own making: it must be there for whoever is loaded after it."""
    (tmp_path / "driver.c").write_text(
        "int cuInit(int f) { return 0; }\n"
        "int cuDeviceGet(int* d, int n) { return 0; }\n"
        "int cuDevicePrimaryCtxRetain(void** c, int d) { return 0; }\n"
        "int cuCtxSetCurrent(void* c) { return 0; }\n"
        "int cuProbe(void) { return 7; }\n"
    )
    (tmp_path / "user.c").write_text("int cuProbe(void);\nint run(void) { return cuProbe(); }\n")
    for source, library in (("driver.c", "libcuda.so.1"), ("user.c", "user.so")):
        command = ["gcc", "-shared", "-fPIC", "-o", tmp_path / library, tmp_path / source]
        subprocess.run(command, check=True)
    program = (
        "import ctypes; from evaluator.host.cuda import Driver; Driver(); "
        f"print(ctypes.CDLL('{tmp_path}/user.so').run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "7\n"


def test_symbols_of_system_libraries_weak_ones_and_the_drivers_are_not_missing():
    listing = """\
 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND memcpy@GLIBC_2.14 (2)
     2: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND __gmon_start__
     3: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND cuLaunchKernelEx
     4: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND omp_get_num_threads
"""
    assert parse(listing).unresolved == ("omp_get_num_threads",)
    assert parse(listing.replace("libc.so.6", "libtvm_ffi.so")).unresolved == ()


@pytest.mark.parametrize("header", ["cuda/std/array", "cuda/barrier", "cuda/ptx", "mma.h"])
def test_the_toolkits_own_device_headers_are_no_banned_library(bench, make_work, header):
    assert policy.run(make_work(f"#include <{header}>\n" + RUN % ""), bench).passed


def test_a_folder_of_the_author_that_is_called_torch_is_the_authors(bench, make_work):
    text = '#include "torch/tile.h"\n' + RUN % ""
    assert policy.run(make_work(text, files={"torch/tile.h": "// ours\n"}), bench).passed
