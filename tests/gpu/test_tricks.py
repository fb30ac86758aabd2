"""Every trick of `tests/candidates` for a GPU gets its verdict on a real one."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from evaluator.bench import Bench
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.summary import planned_stages, summarise
from evaluator.records.verdicts import Lane
from evaluator.targets import find_target
from evaluator.work import Work

pytestmark = pytest.mark.gpu

CANDIDATES = Path(__file__).parent.parent / "candidates"
EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"
SUFFIXES = {".cu", ".cuh", ".h", ".py"}
LANGUAGES = {".cu": "cuda", ".py": "triton"}


def expectation(name: str) -> dict[str, Any]:
    return tomllib.loads((CANDIDATES / name / "expect.toml").read_text())


TRICKS = sorted(
    folder.name
    for folder in CANDIDATES.iterdir()
    if (folder / "expect.toml").exists() and expectation(folder.name)["target"] != "host"
)


def evaluate(paths: list[Path], problem: str, binding: str, bench: Bench, folder: Path) -> Work:
    entry = next(path for path in paths if path.suffix in LANGUAGES)
    candidate = Candidate(
        problem=problem,
        target="h200",
        language=LANGUAGES[entry.suffix],
        binding=binding,
        sources=tuple(Source(path=path.name, content=path.read_text()) for path in paths),
        entry_file=entry.name,
    )
    work = Work(
        candidate=candidate,
        problem=find_problem(problem),
        target=find_target("h200"),
        folder=folder,
    )
    for lane in Lane:
        for result in run_lane(work, bench, lane):
            work = work.with_result(result)
    return work


@pytest.mark.parametrize("name", TRICKS)
def test_it_gets_the_verdict_that_its_folder_names(name, gpu_bench, tmp_path):
    expected = expectation(name)
    paths = sorted(p for p in (CANDIDATES / name).iterdir() if p.suffix in SUFFIXES)
    work = evaluate(paths, expected["problem"], expected["binding"], gpu_bench, tmp_path)
    last = work.results[-1]
    told = f"{last.stage}: {last.verdict}: {last.message}"
    assert last.verdict in (expected["verdict"], *expected.get("also_verdicts", ())), told
    assert last.stage in (expected["stage"], *expected.get("also_stages", ())), told
    assert expected["message"] in last.message, told
    if "target_instructions" in expected:
        summary = summarise(work.results, planned_stages(is_gpu=True))
        assert summary.target_instructions is not None
        assert summary.target_instructions.status == expected["target_instructions"]


@pytest.mark.parametrize(
    ("kernel", "problem", "share"),
    [
        ("gemm_plain.cu", "gemm_n7168_k5120", None),
        ("gemm_wgmma_tma.cu", "gemm_n7168_k5120", 1.0),
        ("mha_forward_wgmma.cu", "mha_with_lse_d128", 1.0),
        ("mha_forward_causal_wgmma.cu", "mha_with_lse_d128_causal", None),
        ("gemm_triton.py", "gemm_n7168_k5120", 1.0),
        ("mha_forward_triton.py", "mha_with_lse_d128", 1.0),
    ],
)
def test_an_example_kernel_passes_and_its_work_share_is_known(
    kernel, problem, share, gpu_bench, tmp_path
):
    work = evaluate([EXAMPLES / kernel], problem, "c", gpu_bench, tmp_path)
    last = work.results[-1]
    summary = summarise(work.results, planned_stages(is_gpu=True))
    assert last.passed, f"{last.stage}: {last.verdict}: {last.message}"
    assert summary.score is not None
    assert summary.target_instructions is not None
    if share is not None:
        assert summary.target_instructions.work_share == pytest.approx(share)
