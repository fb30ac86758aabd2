"""GQA on a real GPU, through every stage: tools get valid offsets, the baseline is told."""

import pytest

from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.problems.baselines import baseline_version, chosen_baseline
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evidence import TimingEvidence
from evaluator.records.verdicts import Lane, Stage, Verdict
from evaluator.targets import find_target
from evaluator.work import Work
from tests.evaluator.test_problems_gqa_builds import TRITON

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "name",
    ["gqa_paged_decode_h24_kv8_d128_ps1", "gqa_paged_decode_h6_kv2_d64_ps1_small"],
)
def test_a_plain_decode_kernel_passes_every_stage(name, gpu_bench, tmp_path):
    problem = find_problem(name)
    candidate = Candidate(
        problem=name,
        target="h200",
        language="triton",
        binding="c",
        sources=(Source(path="kernel.py", content=TRITON),),
        entry_file="kernel.py",
    )
    work = Work(candidate=candidate, problem=problem, target=find_target("h200"), folder=tmp_path)
    for lane in Lane:
        for result in run_lane(work, gpu_bench, lane):
            work = work.with_result(result)
    last = work.results[-1]
    assert last.stage is Stage.TIMING, f"{last.stage}: {last.verdict}: {last.message}"
    assert last.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE), last.message
    timing = last.evidence
    assert isinstance(timing, TimingEvidence)
    assert timing.baseline == chosen_baseline(problem, "cuda")
    assert timing.baseline_version == baseline_version(problem, "cuda")
    print(name, timing.baseline.name, timing.baseline_version, last.message)
