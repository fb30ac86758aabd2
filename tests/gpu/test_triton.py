"""What a traced Triton candidate replays on a real GPU: every kind of argument and of launch."""

from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evidence import CountersEvidence, TimingEvidence
from evaluator.records.verdicts import InstructionStatus, Lane, Stage, Verdict
from evaluator.targets import find_target
from evaluator.work import Work

pytestmark = pytest.mark.gpu

HEAD = """\
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


"""

DEVICE_DESCRIPTORS = """\
@triton.jit
def gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([row, k]), right.load([column, k]).T, total)
    out.store([row, column], total.to(tl.bfloat16))


def run(A, B, C):
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8))
    (M, K), N = A.shape, B.shape[0]
    gemm[(M // 64, N // 64)](A, B, C, M, N, K, 64, 64, 64)
"""

HOST_DESCRIPTORS_AND_TWO_BLOCKS = """\
@triton.jit
def gemm(a, b, c, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
    c.store([row, column], total.to(tl.bfloat16))


def run(A, B, C):
    K = A.shape[1]
    a = TensorDescriptor.from_tensor(A, [64, 64])
    b = TensorDescriptor.from_tensor(B, [64, 64])
    half = C.shape[0] // 2
    for part in range(2):
        rows = slice(part * half, (part + 1) * half)
        a = TensorDescriptor.from_tensor(A[rows], [64, 64])
        c = TensorDescriptor.from_tensor(C[rows], [64, 64])
        gemm[(half // 64, C.shape[1] // 64)](a, b, c, K, 64, 64, 64)
"""

SPLIT_K = """\
@triton.jit
def part(a, b, sums, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.program_id(2) * BK + tl.arange(0, BK)
    left = tl.load(a + rows[:, None] * K + inner[None, :])
    right = tl.load(b + columns[None, :] * K + inner[:, None])
    tl.atomic_add(sums + rows[:, None] * N + columns[None, :], tl.dot(left, right))


@triton.jit
def finish(sums, c, factor, absent, small, COUNT: tl.constexpr):
    at = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    value = tl.load(sums + at) * factor * small
    if absent is None:
        tl.store(c + at, value.to(c.dtype.element_ty))


def run(A, B, C):
    (M, K), N = A.shape, B.shape[0]
    sums = torch.zeros(M, N, dtype=torch.float32, device=A.device)
    part[(M // 64, N // 64, K // 64)](A, B, sums, M, N, K, 64, 64, 64)
    finish[(M * N // 1024,)](sums, C, 0.25, None, 4, COUNT=1024)
"""

CLUSTERS = """\
@triton.jit
def gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        right = tl.load(b + columns[None, :] * K + inner[:, None])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


def run(A, B, C):
    (M, K), N = A.shape, B.shape[0]
    gemm[(M // 128, N // 128)](A, B, C, M, N, K, 128, 128, 64, num_ctas=2)
"""

TWO_OF_ONE_NAME = """\
@triton.jit
def gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        right = tl.load(b + columns[None, :] * K + inner[:, None])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


def run(A, B, C):
    (M, K), N = A.shape, B.shape[0]
    half = M // 2
    gemm[(half // 64, N // 64)](A, B, C, half, N, K, 64, 64, 64)
    gemm[(half // 128, N // 128)](A[half:], B, C[half:], half, N, K, 128, 128, 64)
"""

TOO_MANY_COOPERATING_BLOCKS = """\
@triton.jit
def fill(target):
    tl.store(target, 0.0)


def run(A, B, C):
    fill[(1 << 20,)](C, launch_cooperative_grid=True)
"""


def evaluate(text: str, bench: Bench, folder: Path) -> Work:
    candidate = Candidate(
        problem="gemm_n256_k256",
        target="h200",
        language="triton",
        sources=(Source(path="kernel.py", content=HEAD + text),),
        entry_file="kernel.py",
    )
    work = Work(
        candidate=candidate,
        problem=find_problem("gemm_n256_k256"),
        target=find_target("h200"),
        folder=folder,
    )
    for lane in Lane:
        for result in run_lane(work, bench, lane):
            work = work.with_result(result)
    return work


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        pytest.param(DEVICE_DESCRIPTORS, ["gemm"], id="device descriptors in scratch memory"),
        pytest.param(HOST_DESCRIPTORS_AND_TWO_BLOCKS, ["gemm"], id="host descriptors of views"),
        pytest.param(SPLIT_K, ["part", "finish"], id="cleared scratch, floats, absent pointers"),
        pytest.param(CLUSTERS, ["gemm"], id="clusters"),
        pytest.param(TWO_OF_ONE_NAME, ["gemm", "gemm_2"], id="one kernel compiled twice"),
    ],
)
def test_every_kind_of_launch_computes_the_product_and_is_counted(
    text, kernels, gpu_bench, tmp_path
):
    work = evaluate(text, gpu_bench, tmp_path)
    last = work.results[-1]
    assert (last.stage, last.verdict) in (
        (Stage.TIMING, Verdict.PASSED),
        (Stage.TIMING, Verdict.INCONCLUSIVE),
    ), f"{last.stage}: {last.verdict}: {last.message}"
    counters = work.result(Stage.COUNTERS).evidence
    assert isinstance(counters, CountersEvidence)
    assert counters.status is InstructionStatus.EXECUTED
    assert counters.work_share == pytest.approx(1.0)
    assert {launch.name for launch in counters.launches if launch.kind == "kernel"} == set(kernels)


def test_what_was_traced_is_what_was_timed(gpu_bench, tmp_path):
    """Names, grids and blocks of the record, against CUPTI's."""
    work = evaluate(TWO_OF_ONE_NAME, gpu_bench, tmp_path)
    traced = work.result(Stage.COMPILATION).evidence.launches
    timing = work.results[-1].evidence
    assert isinstance(timing, TimingEvidence)
    seen = {(one.name, one.grid, one.block) for one in timing.launches if one.kind == "kernel"}
    assert seen == {(one.name, one.grid, one.block) for one in traced}


def test_a_launch_that_cuda_refuses_is_told_by_name(gpu_bench, tmp_path):
    last = evaluate(TOO_MANY_COOPERATING_BLOCKS, gpu_bench, tmp_path).results[-1]
    assert last.verdict in (Verdict.RUNTIME_ERROR, Verdict.SANITIZER_ERROR), last.message
    assert "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" in last.to_json()
