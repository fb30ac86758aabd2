"""The tools of this machine: found, versioned, and asked for in words when they are missing."""

import os

import pytest

from evaluator.records.verdicts import EvaluatorFault
from evaluator.toolchain import VERSION, Toolchain


@pytest.fixture(scope="module")
def tools():
    return Toolchain.find()


def test_it_finds_the_real_nvcc_behind_a_script(tools):
    nvcc = tools.need("nvcc")
    assert nvcc.path == nvcc.root / "bin" / "nvcc"
    assert nvcc.path.read_bytes()[:4] == b"\x7fELF"
    assert nvcc.version.startswith("13.")


def test_it_finds_the_disassemblers_and_the_host_compiler(tools):
    for name in ("cuobjdump", "nvdisasm", "g++"):
        tool = tools.need(name)
        assert os.access(tool.path, os.X_OK)
        assert tool.path.resolve().is_relative_to(tool.root)
        assert tool.version[0].isdigit()


def test_it_finds_the_tvm_ffi_headers_without_importing_them(tools):
    ffi = tools.need_tvm_ffi()
    assert (ffi.include / "tvm" / "ffi" / "tvm_ffi.h").is_file()
    assert (ffi.lib / "libtvm_ffi.so").is_file()
    assert ffi.version.startswith("0.1.")


@pytest.mark.parametrize("name", ["nvcc", "cuobjdump", "ncu", "compute-sanitizer", "g++"])
def test_a_missing_tool_is_our_fault_and_comes_with_the_fix(name):
    with pytest.raises(EvaluatorFault, match=rf"^{name.replace('+', '.')} was not found.*install"):
        Toolchain().need(name)


def test_missing_headers_are_our_fault_too():
    with pytest.raises(EvaluatorFault, match="apache-tvm-ffi"):
        Toolchain().need_tvm_ffi()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0", "13.0.88"),
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022", "12.2.0"),
        ("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1)",
         "2025.3.1.0"),
        ("Compute Sanitizer version 2025.3.1", "2025.3.1"),
    ],
)  # fmt: skip
def test_it_reads_the_version_as_each_tool_prints_it(text, version):
    assert VERSION.search(text).group(1) == version
