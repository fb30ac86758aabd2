"""What `readelf` tells of a library: exported, left open, linked; and what of it is banned."""

import pytest

from evaluator.records.candidate import Binding
from evaluator.records.evidence import CompilationEvidence, Ending, ProcessReport
from evaluator.records.verdicts import Verdict
from evaluator.stages import compilation
from evaluator.symbols import looked_up, parse, why_missing
from evaluator.targets import TARGETS

LISTING = """\
 0x0000000000000001 (NEEDED)             Shared library: [libcublasLt.so.13]
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc@GLIBC_2.2.5 (2)
     2: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND cudnnConvolutionForward
     3: 0000000000001119    11 FUNC    GLOBAL DEFAULT   14 run
     4: 0000000000001130    11 FUNC    LOCAL  DEFAULT   14 hidden
     5: 0000000000001140    11 OBJECT  GLOBAL DEFAULT   14 table
     6: 0000000000001150     0 NOTYPE  GLOBAL DEFAULT   14 _end
"""


def test_it_tells_exported_open_and_linked_names():
    seen = parse(LISTING)
    assert seen.exported == ("run", "table")
    assert seen.undefined == ("cudnnConvolutionForward", "malloc")
    assert seen.needed == ("libcublasLt.so.13", "libm.so.6")


def test_a_vendors_calls_and_libraries_are_banned_and_the_systems_are_not():
    seen = parse(LISTING)
    assert seen.banned_symbols == ("cudnnConvolutionForward",)
    assert seen.banned_libraries == ("libcublasLt.so.13",)


@pytest.mark.parametrize("name", ["cublasnotes", "cudnn", "my_cublasGemmEx", "cudaMalloc"])
def test_names_that_only_resemble_a_vendors_are_not_banned(name):
    line = f"     2: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND {name}\n"
    assert parse(line).undefined == (name,)
    assert parse(line).banned_symbols == ()


def evidence(**changes: object) -> CompilationEvidence:
    process = ProcessReport(command=("nvcc",), ending=Ending.FINISHED, exit_code=0, duration_ns=1)
    library = {"role": "library", "sha256": "0" * 64, "byte_count": 9}
    fields = {
        "process": process,
        "compiler_version": "nvcc 13.0.88",
        "log": "",
        "log_truncated": False,
        "log_byte_count": 0,
        "cache_key": "k",
        "cache_hit": False,
        "entry_symbol": "run",
        "exported_symbols": ("run",),
        "library": library,
    }
    return CompilationEvidence.model_validate({**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "verdict", "message"),
    [
        ({}, Verdict.PASSED, "built in 0.0 s"),
        (
            {"banned_libraries": ("libcublasLt.so.13",)},
            Verdict.BANNED_LIBRARY,
            "the library calls or links libcublasLt.so.13",
        ),
        (
            {"banned_symbols": ("cublasGemmEx",), "exported_symbols": ()},
            Verdict.BANNED_LIBRARY,
            "the library calls or links cublasGemmEx",
        ),
        (
            {"exported_symbols": ()},
            Verdict.ENTRY_POINT_MISSING,
            "entry point 'run' is not exported; nothing is exported; "
            'define it as an extern "C" host function, neither static nor inline',
        ),
    ],
)
def test_a_linked_library_is_banned_before_a_missing_entry_point_is_told(changes, verdict, message):
    result = compilation.judge(evidence(**changes), target=TARGETS["h200"], binding=Binding.C)
    assert (result.verdict, result.message) == (verdict, message)


@pytest.mark.parametrize(
    ("log", "verdict", "message"),
    [
        (
            "nvcc error   : 'ptxas' died due to signal 24\n",
            Verdict.TIMEOUT,
            f"the compiler was still running at its limit, {compilation.COMPILE_SECONDS} s",
        ),
        (
            "cc1plus: out of memory allocating 65536 bytes\n",
            Verdict.COMPILE_ERROR,
            "the compiler ran out of memory, limit 8 GiB a process",
        ),
    ],
)
def test_a_pass_of_the_compiler_that_was_killed_is_known_by_the_log(log, verdict, message):
    """nvcc ends with an ordinary error of its own when a limit killed one of its passes."""
    process = evidence().process.model_copy(update={"exit_code": 2})
    seen = evidence(process=process, log=log, library=None)
    result = compilation.judge(seen, target=TARGETS["h200"], binding=Binding.C)
    assert (result.verdict, result.message) == (verdict, message)


def test_each_binding_looks_for_its_own_name():
    assert looked_up("run", Binding.C) == "run"
    assert looked_up("run", Binding.TVM_FFI) == "__tvm_ffi_run"


def test_a_longer_name_is_no_near_match_of_a_mangled_one():
    assert "C++ linkage" in why_missing("run", Binding.C, ["_Z3runPf"])
    assert "C++ linkage" in why_missing("run", Binding.C, ["_ZN2ns3runEv"])
    assert "C++ linkage" not in why_missing("run", Binding.C, ["_Z6rerun2v"])
