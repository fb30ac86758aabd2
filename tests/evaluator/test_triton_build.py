"""Triton through policy, compilation and sass with the real compiler; hostile sources included."""

import re
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest

from evaluator.build import plan
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem, prototype
from evaluator.records.evidence import SassEvidence
from evaluator.records.verdicts import EvaluatorFault, Lane, Stage, Tier, Verdict
from evaluator.stages import compilation, policy
from evaluator.triton import building
from tests.evaluator.conftest import CANDIDATES
from tests.gpu import test_triton as on_gpu

HONEST = (CANDIDATES / "triton_gemm_small" / "kernel.py").read_text()
HEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def fill(target, count, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.full((BLOCK,), value, tl.float32), mask=at < count)


"""


@pytest.fixture
def triton_work(make_work):
    return lambda text, **options: make_work(text, entry="kernel.py", **options)


@pytest.fixture
def build(bench, triton_work):
    """Compilation alone: what the policy would refuse must fail here too."""
    return lambda text, **options: compilation.run(triton_work(text, **options), bench)


@pytest.mark.parametrize(
    ("target", "architecture", "opcode"),
    [("h200", "sm_90a", "HGMMA.64x64x16"), ("b200", "sm_100a", "UTCHMMA")],
)
def test_a_triton_kernel_is_built_for_the_targets_architecture(
    bench, triton_work, target, architecture, opcode
):
    read, built, inspected = run_lane(triton_work(HONEST, target=target), bench, Lane.BUILD)
    assert read.message == "3 imports, none of a library that does the work"
    assert built.verdict is Verdict.PASSED, built.message
    assert f"Compiling entry function 'gemm' for '{architecture}'" in built.evidence.log
    assert built.evidence.compiler_version == f"triton {bench.toolchain.triton.version}"
    assert built.evidence.exported_symbols == ("run",)
    assert built.evidence.unresolved_symbols == ()
    assert built.evidence.process.sandboxed is True
    assert isinstance(inspected.evidence, SassEvidence)
    assert inspected.evidence.tier is Tier.MMA
    assert opcode in inspected.message


def test_the_cubin_in_the_library_is_the_one_that_triton_made(bench, triton_work):
    work = triton_work(HONEST)
    built = compilation.run(work, bench)
    [kernel] = built.evidence.kernels
    assert (kernel.name, kernel.dynamic_shared_bytes, kernel.spill_store_bytes) == (
        "gemm",
        49152,
        0,
    )
    assert kernel.cubin_sha256 == built.evidence.cubin.sha256
    [launch] = built.evidence.launches
    assert (launch.name, launch.grid, launch.block) == ("gemm", (4, 4, 1), (128, 1, 1))
    done = work.with_result(built)
    assert (
        b'loaded(ptxboard_image_0, "gemm", 49152)'
        in done.path(done.artifact("launcher")).read_bytes()
    )


def test_one_kernel_compiled_twice_gets_two_names_and_equal_launches_are_counted(build):
    run = "def run(A, B, C):\n" + "".join(
        f"    fill[({grid},)](C, 9, 0.5, BLOCK={block})\n"
        for grid, block in [(1, 64), (2, 128)] * 2
    )
    evidence = build(HEAD + run).evidence
    assert [kernel.name for kernel in evidence.kernels] == ["fill", "fill_2"]
    assert [(one.name, one.grid, one.count) for one in evidence.launches] == [
        ("fill", (1, 1, 1), 2),
        ("fill_2", (2, 1, 1), 2),
    ]


@pytest.mark.parametrize("problem", ["gemm_n256_k256", "mha_with_lse_d128", "mha_bwd_d64_causal"])
def test_the_prototype_of_a_problem_builds_as_it_stands(bench, triton_work, problem):
    text = prototype(find_problem(problem), "c", "triton")
    *_, last = run_lane(triton_work(text, problem=problem), bench, Lane.BUILD)
    assert (last.stage, last.verdict) == (Stage.SASS, Verdict.PASSED), last.message


EVERY_ARGUMENT = {
    "device descriptors": on_gpu.DEVICE_DESCRIPTORS,
    "host descriptors": on_gpu.HOST_DESCRIPTORS_AND_TWO_BLOCKS,
    "scalars, absent pointers and scratch": on_gpu.SPLIT_K,
    "clusters": on_gpu.CLUSTERS,
}
WIDTHS = {"CUdeviceptr": 8, "CUtensorMap": 128}
PARAMETER = re.compile(r"Ordinal\s*:\s*(\S+)\s+Offset\s*:\s*\S+\s+Size\s*:\s*(\S+)")
ARGUMENT = re.compile(r"^    (?:alignas\(64\) )?(CUdeviceptr|CUtensorMap|uint(\d+)_t) a\d+ =", re.M)


@pytest.mark.parametrize("name", EVERY_ARGUMENT)
def test_the_launcher_passes_what_the_cubins_parameter_lists_have(bench, triton_work, name):
    work = triton_work(on_gpu.HEAD + EVERY_ARGUMENT[name])
    built = compilation.run(work, bench)
    assert built.verdict is Verdict.PASSED, built.message
    done = work.with_result(built)
    text = done.path(done.artifact("launcher")).read_text()
    bodies = text[text.index('extern "C" void run') :].split("    launch(state.kernel[")
    passed = {
        int(after.split("]")[0]): [
            WIDTHS.get(kind, int(bits or 0) // 8) for kind, bits in ARGUMENT.findall(before)
        ]
        for before, after in pairwise(bodies)
    }
    expected = {}
    for number, cubin in enumerate(one for one in built.artifacts if one.role == "cubin"):
        command = [bench.toolchain.cuobjdump.path, "-elf", work.path(cubin)]
        path = {"PATH": f"{bench.toolchain.nvdisasm.path.parent}:/usr/bin:/bin"}
        listing = subprocess.run(command, capture_output=True, text=True, env=path).stdout
        sizes = {int(order, 16): int(size, 16) for order, size in PARAMETER.findall(listing)}
        expected[number] = [sizes[order] for order in sorted(sizes)]
    assert passed == expected


def test_a_host_descriptor_is_a_tensor_map_of_the_view(bench, triton_work):
    work = triton_work(on_gpu.HEAD + on_gpu.HOST_DESCRIPTORS_AND_TWO_BLOCKS)
    done = work.with_result(compilation.run(work, bench))
    lines = done.path(done.artifact("launcher")).read_text().splitlines()
    maps = [line.split("= ")[1] for line in lines if "CUtensorMap a" in line]
    bf16, swizzle_128 = 9, 3
    assert maps == [
        f"tensor_map(parameter[{tensor}] + {offset}u, {bf16}, 2, extents{at}, steps{at}, box{at}, "
        f"{swizzle_128}, false);"
        for rows in (0, 128 * 256 * 2)
        for tensor, at, offset in [(0, 0, rows), (1, 5, 0), (2, 10, rows)]
    ]


TUNED = """\
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 256}, num_warps=8)], key=["count"])
@triton.heuristics({"EVEN": lambda given: given["count"] % given["BLOCK"] == 0})
@triton.jit
def fill(target, count, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.zeros((BLOCK,), tl.float32), mask=EVEN or at < count)


def run(A, B, C):
    fill[lambda meta: (triton.cdiv(C.numel(), meta["BLOCK"]),)](C, C.numel())
"""


def test_one_configuration_and_heuristics_are_taken(build):
    result = build(TUNED)
    assert result.verdict is Verdict.PASSED, result.message
    [launch] = result.evidence.launches
    assert (launch.grid, launch.block) == ((256, 1, 1), (256, 1, 1))


FAILING = {
    "a name that a kernel does not know": (
        "@triton.jit\ndef bad(x):\n    tl.store(x, nothing)\n\n\n"
        "def run(A, B, C):\n    bad[(1,)](C)\n",
        "kernel.py:14: error: NameError",
    ),
    "an error in a function that a kernel calls": (
        "@triton.jit\ndef inner(x):\n"
        "    tl.static_assert(x.dtype == tl.float64, 'only doubles')\n\n\n"
        "@triton.jit\ndef bad(x):\n    inner(x)\n\n\ndef run(A, B, C):\n    bad[(1,)](C)\n",
        "only doubles",
    ),
    "more shared memory than there is": (
        "@triton.jit\ndef bad(x):\n    at = tl.arange(0, 512)\n"
        "    big = x + at[:, None] * 512 + at\n    held = tl.load(big).to(tl.float32)\n"
        "    tl.store(big, tl.trans(held))\n\n\n"
        "def run(A, B, C):\n    bad[(1,)](C, num_warps=32)\n",
        "out of resource: shared memory",
    ),
    "an exception of the host function": (
        "def run(A, B, C):\n    raise ValueError('no such size')\n",
        "kernel.py:13: error: ValueError: no such size",
    ),
    "arithmetic on a tensor": (
        "def run(A, B, C):\n    fill[(1,)](C + 1, 9, 0.5, BLOCK=64)\n",
        "kernel.py:13: error: tensor.__add__: while a candidate is built its tensors hold no",
    ),
    "work of torch": (
        "def run(A, B, C):\n    torch.matmul(A, B)\n",
        "kernel.py:13: error: torch.matmul: no library does the work here",
    ),
    "an address as a number": (
        "def run(A, B, C):\n    fill[(1,)](C, C.data_ptr(), 0.5, BLOCK=64)\n",
        "an address was passed as a number",
    ),
    "no launch at all": ("def run(A, B, C):\n    pass\n", "run launched no kernel"),
    "an exit": ("def run(A, B, C):\n    raise SystemExit\n", "kernel.py:13: error: SystemExit"),
    "a wrong call": ("def run(A, B):\n    pass\n", "takes 2 positional arguments but 3 were given"),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_authors_error_is_told_in_one_line(build, name):
    source, said = FAILING[name]
    result = build(HEAD + source)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert said in result.message
    assert result.message.endswith("(built for sm_90a)")
    assert "/" not in result.message.split(":")[0]


REACH = "from triton.runtime import cache\nsystem = cache.os\n"
RECORD = (
    '{"kernels": [{"name": "a", "shared_bytes": 0}], "scratch": [], "operations": [{"kind": '
    '"launch", "kernel": 0, "grid": [1, 1, 1], "warps": 1, "ctas": 1, "cooperative": false, '
    '"dependent": false, "arguments": [%s]}]}'
)
FAR = '{"kind": "pointer", "storage": "parameter", "number": 3, "offset": 0}'


def forging(record: str, cubin: str = "") -> str:
    return (
        f"{REACH}def put(name, text):\n"
        "    file = system.open('../out/' + name, system.O_CREAT | system.O_WRONLY)\n"
        "    system.write(file, text.encode())\n\n\n"
        f"put('trace.json', {record!r})\nput('kernel_0.cubin', {cubin!r})\nsystem._exit(0)\n"
    )


HOSTILE = {
    "it ends the process as if all were well": (f"{REACH}system._exit(0)\n", "without its record"),
    "its record is no JSON": (forging("{"), "not valid JSON"),
    "its record launches a kernel without a cubin": (forging(RECORD % ""), "has no cubin"),
    "its cubin is no cubin": (forging(RECORD % "", "\x7fELF, or so"), "fatbinary cannot read"),
    "its record names a fourth tensor": (
        forging(RECORD % FAR, "\x7fELF"),
        "a tensor beyond the 3 of the problem",
    ),
    "its record is a link to a file of the system": (
        f"{REACH}system.symlink('/proc/self/maps', '../out/trace.json')\nsystem._exit(0)\n",
        "expected a regular file",
    ),
    "its record is a folder": (
        f"{REACH}system.mkdir('../out/trace.json')\nsystem._exit(0)\n",
        "expected a regular file",
    ),
    "its record is huge": (
        f"{REACH}file = system.open('../out/trace.json', system.O_CREAT | system.O_WRONLY)\n"
        "system.truncate('../out/trace.json', 17 << 20)\nsystem._exit(0)\n",
        "17825792 bytes, at most 16777216",
    ),
    "it asks for more memory than a compiler gets": (
        "hoard = [bytearray(1 << 30) for _ in range(64)]\n",
        "the compiler ran out of memory, limit 8 GiB a process",
    ),
    "it crashes the interpreter": (f"{REACH}system.abort()\n", "SIGABRT"),
    "it prints until the log is full": (
        "for number in range(10 ** 5):\n    print('error: all is well', 'x' * 100)\n",
        "kernel.py: error: KeyError: 'run'",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_source_gets_a_verdict_and_nothing_else(build, name):
    source, said = HOSTILE[name]
    result = build(source)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert said in result.message
    assert result.evidence.library is None


def test_a_run_that_does_not_end_is_stopped_at_the_limit(build, monkeypatch):
    monkeypatch.setattr(building, "COMPILE_SECONDS", 3)
    result = build(HEAD + "def run(A, B, C):\n    while True:\n        pass\n")
    assert result.verdict is Verdict.TIMEOUT
    assert "still running at its limit" in result.message


def test_the_log_of_a_talkative_source_keeps_what_the_compiler_said(build):
    talk = "for _ in range(10 ** 5):\n    print('x' * 100)\n"
    result = build(HEAD + talk + "def run(A, B, C):\n    fill[(1,)](C, 9, 0.5, BLOCK=64)\n")
    assert result.verdict is Verdict.PASSED, result.message
    assert [kernel.name for kernel in result.evidence.kernels] == ["fill"]
    assert result.evidence.log_byte_count < 16 << 10


@pytest.mark.parametrize(
    ("name", "source"),
    [("parentheses", "x = " + "(" * 10**5), ("signs", "x = " + "-" * 10**6 + "1")],
)
def test_a_source_that_no_parser_survives_is_the_authors_error(bench, triton_work, name, source):
    result = policy.run(triton_work(source), bench)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "nested" in result.message


def test_the_policy_names_every_finding_and_decides_by_library_work(bench, triton_work):
    source = HEAD + "import os\n\n\ndef run(A, B, C):\n    C.copy_(torch.mm(A, B))\n"
    result = policy.run(triton_work(source), bench)
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.message.startswith("kernel.py:16: torch.mm: no library does the work here")
    assert result.message.endswith("(and 1 more)")
    assert result.evidence.banned_headers == ("line 16: torch.mm",)
    assert result.evidence.unavailable_headers == ("line 12: import of os",)
    assert result.evidence.log.splitlines()[1].startswith("kernel.py:12: error: import of os")


def test_a_missing_entry_point_is_its_own_verdict(bench, triton_work):
    result = policy.run(triton_work(HEAD), bench)
    assert result.verdict is Verdict.ENTRY_POINT_MISSING
    assert "defines no def run(A, B, C)" in result.message


def test_a_triton_candidate_is_one_python_file(bench, triton_work, make_work):
    two = policy.run(triton_work(HONEST, files={"tiles.py": "x = 1\n"}), bench)
    assert (two.verdict, two.message) == (
        Verdict.COMPILE_ERROR,
        "a Triton candidate is one file, seen 2: kernel.py, tiles.py",
    )
    folder = policy.run(make_work(HONEST, entry="a/kernel.py"), bench)
    assert folder.verdict is Verdict.COMPILE_ERROR
    assert "such as 'kernel.py', seen 'a/kernel.py'" in folder.message


def test_a_finished_build_is_taken_from_the_cache_and_its_key_knows_what_matters(
    bench, triton_work
):
    work = triton_work(HONEST + "# cached\n")
    first, second = compilation.run(work, bench), compilation.run(work, bench)
    assert (first.evidence.cache_hit, second.evidence.cache_hit) == (False, True)
    assert second.evidence.launches == first.evidence.launches
    key = plan(work, bench.toolchain).key(work)
    newer = replace(bench.toolchain, triton=replace(bench.toolchain.triton, version="99.0"))
    assert plan(work, newer).key(work) != key
    larger = triton_work(HONEST + "# cached\n", problem="gemm_n7168_k5120")
    assert plan(larger, bench.toolchain).key(larger) != key


def test_a_machine_without_triton_takes_the_blame(bench, triton_work):
    lacking = replace(bench, toolchain=replace(bench.toolchain, triton=None), cache=None)
    with pytest.raises(EvaluatorFault, match="triton was not found"):
        compilation.run(triton_work(HONEST), lacking)


def test_equal_sources_give_equal_libraries(bench, triton_work):
    uncached = replace(bench, cache=None)
    first = compilation.run(triton_work(HONEST), uncached)
    second = compilation.run(triton_work(HONEST), uncached)
    assert first.stage is Stage.COMPILATION
    assert first.evidence.library == second.evidence.library
