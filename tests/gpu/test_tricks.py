"""Every trick of `tests/candidates` for a GPU gets its verdict on a real one."""

from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.corpus.cases import Case, load_cases
from evaluator.corpus.outcomes import AS_EXPECTED, finding_of
from evaluator.corpus.running import build, finish
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.summary import planned_stages, summarise
from evaluator.records.verdicts import Lane
from evaluator.targets import find_target
from evaluator.work import Work

pytestmark = pytest.mark.gpu

EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"
LANGUAGES = {".cu": "cuda", ".py": "triton"}
TRICKS = [case for case in load_cases() if case.candidate.target != "host"]


@pytest.mark.parametrize("case", TRICKS, ids=lambda case: case.name)
def test_it_gets_the_verdict_that_its_folder_names(case: Case, gpu_bench: Bench, tmp_path: Path):
    seen = finish(build(case, gpu_bench, tmp_path), gpu_bench, lambda _: gpu_bench.device)
    told = f"{seen.stage}: {seen.verdict}: {seen.message} {seen.fault}"
    assert finding_of(case.expectation, seen) in AS_EXPECTED, told


def evaluate(path: Path, problem: str, bench: Bench, folder: Path) -> Work:
    candidate = Candidate(
        problem=problem,
        target="h200",
        language=LANGUAGES[path.suffix],
        binding="c",
        sources=(Source(path=path.name, content=path.read_text()),),
        entry_file=path.name,
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
    work = evaluate(EXAMPLES / kernel, problem, gpu_bench, tmp_path)
    last = work.results[-1]
    summary = summarise(work.results, planned_stages(is_gpu=True))
    assert last.passed, f"{last.stage}: {last.verdict}: {last.message}"
    assert summary.score is not None
    assert summary.target_instructions is not None
    if share is not None:
        assert summary.target_instructions.work_share == pytest.approx(share)
