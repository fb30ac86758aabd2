"""The evaluations that come with the project, recorded on an H200, are judged again here."""

import zipfile
from pathlib import Path

import pytest

from evaluator.bundle import verify_bundle
from evaluator.problems import find_problem
from evaluator.records.evaluation import AnyStageResult, EvaluationRecord
from evaluator.records.evidence import (
    CompilationEvidence,
    CorrectnessEvidence,
    PolicyEvidence,
    SanitizerEvidence,
    SassEvidence,
    TimingEvidence,
)
from evaluator.records.summary import planned_stages, summarise
from evaluator.stages import compilation, correctness, policy, sanitizer, sass, timing
from evaluator.targets import find_target

FOLDER = Path(__file__).parents[2] / "examples" / "recorded"
# name of the submission: verdict, target instructions, at least this speedup, at most this one
EXPECTED = {
    "gemm_wgmma_tma": ("PASSED", "executed", 0.95, 1.1),
    "gemm_plain": ("PASSED", "absent", 0.3, 0.45),
    "gemm_tvm_ffi": ("PASSED", "absent", 0.01, 0.2),
    "mha_forward_wgmma": ("PASSED", "executed", 0.95, 1.1),
    "mha_forward_causal_wgmma": ("PASSED", "executed", 0.95, 1.1),
    "wrong_epilogue": ("INCORRECT_NUMERICAL", "unknown", None, None),
    "unlaunched_tma": ("PASSED", "not_executed", 0.3, 0.45),
    "out_of_bounds": ("SANITIZER_ERROR", "absent", None, None),
    "infinite_loop": ("TIMEOUT", "absent", None, None),
    "cublas_user": ("BANNED_LIBRARY", None, None, None),
    "timer_forger": ("TIMING_DISPUTED", "absent", None, None),
}
BUNDLES = {path.stem.rpartition("_")[0]: path for path in sorted(FOLDER.glob("*.zip"))}


def record_of(name: str) -> EvaluationRecord:
    with zipfile.ZipFile(BUNDLES[name]) as archive:
        return EvaluationRecord.from_json(archive.read("record.json").decode())


def judged_again(stage: AnyStageResult, record: EvaluationRecord) -> AnyStageResult:
    evidence, candidate = stage.evidence, record.candidate
    allowed = find_problem(candidate.problem).allowed_libraries
    match evidence:
        case PolicyEvidence():
            return policy.judge(evidence)
        case CompilationEvidence():
            target = find_target(candidate.target)
            return compilation.judge(evidence, target=target, binding=candidate.binding)
        case SassEvidence():
            return sass.judge(evidence)
        case SanitizerEvidence():
            return sanitizer.judge(evidence)
        case CorrectnessEvidence():
            return correctness.judge(evidence, allowed_libraries=allowed)
        case TimingEvidence():
            return timing.judge(evidence, allowed_libraries=allowed)
    return stage


def test_every_kind_of_verdict_that_was_recorded_is_there():
    assert set(BUNDLES) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_evaluation_has_the_verdict_that_its_kernel_deserves(name):
    verdict, instructions, low, high = EXPECTED[name]
    record = record_of(name)
    assert record.verdict == verdict
    seen = record.target_instructions.status if record.target_instructions else None
    assert seen == instructions
    assert (record.score is None) == (low is None)
    if record.score:
        assert low <= record.score.speedup <= high
    assert verify_bundle(BUNDLES[name]).faults == ()


@pytest.mark.parametrize("name", EXPECTED)
def test_todays_judges_decide_alike_on_the_recorded_evidence(name):
    record = record_of(name)
    for stage in record.stages:
        again = judged_again(stage, record)
        assert (again.verdict, again.message) == (stage.verdict, stage.message), stage.stage
    summary = summarise(record.stages, planned_stages(is_gpu=True))
    assert summary.verdict == record.verdict
    assert summary.score == record.score
    assert summary.target_instructions == record.target_instructions
