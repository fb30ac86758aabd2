"""Solutions in, traces out: no verdict is lost, nobody is blamed for what is nobody's fault."""

import json
from datetime import UTC, datetime

import pytest

from evaluator.problems import find_problem
from evaluator.records import (
    Binding,
    Candidate,
    CorrectnessEvidence,
    CorrectnessTrial,
    Ending,
    Environment,
    EvaluationRecord,
    InvalidRecord,
    Language,
    OutputError,
    ProcessReport,
    Score,
    Solution,
    Source,
    Stage,
    StageResult,
    Tolerance,
    Trace,
    Verdict,
    candidate_to_solution,
    evaluation_to_trace,
    read,
    solution_to_candidate,
    status_of,
    verdict_of,
    write,
)

PROBLEM = find_problem("mha_with_lse_d64_small")
ENDED = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
SCORE = Score(
    scoring_version="1",
    latency_ns=2_500_000.0,
    baseline_latency_ns=5_000_000.0,
    speedup=2.0,
    speedup_low=1.9,
    speedup_high=2.1,
    noise=0.01,
    sample_count=150,
)


def candidate(binding=Binding.C, target="h200"):
    return Candidate(
        problem=PROBLEM.name,
        target=target,
        language="cuda",
        binding=binding,
        sources=(Source(path="kernel.cu", content="// k\n"), Source(path="a/b.cuh", content="")),
        entry_file="kernel.cu",
    )


def output(name, bad, max_abs, max_rel):
    return OutputError(
        name=name,
        shape=(4,),
        dtype="bfloat16",
        element_count=4,
        unwritten_count=0,
        nonfinite_count=0,
        bad_count=bad,
        max_abs_error=max_abs,
        max_rel_error=max_rel,
    )


def correctness(*trials):
    evidence = CorrectnessEvidence(
        process=ProcessReport(command=("host",), ending=Ending.FINISHED, duration_ns=1),
        tolerance=Tolerance(),
        planned_trials=3,
        trials=tuple(
            CorrectnessTrial(trial=number, outputs=outputs) for number, outputs in enumerate(trials)
        ),
        library_sha256="0" * 64,
    )
    return StageResult(
        stage=Stage.CORRECTNESS,
        verdict=Verdict.PASSED,
        message="",
        evidence=evidence,
        ended_at=ENDED,
    )


def evaluation(verdict, *, stages=(), score=None):
    return EvaluationRecord(
        candidate=candidate(),
        problem_digest=PROBLEM.digest,
        environment=Environment(
            harness_version="1",
            operating_system="Linux",
            python="3.12",
            device_name="NVIDIA H200",
            torch="2.11.0",
            sandbox="bubblewrap",
        ),
        stages=stages,
        stages_not_reached=(Stage.TIMING,),
        verdict=verdict,
        message="what was seen",
        score=score,
    )


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_survives_the_way_to_flashinfer_and_back(verdict):
    stages = (correctness((output("O", 1, 0.5, 0.25),)),)
    record = evaluation(verdict, stages=stages, score=SCORE)
    text = write(evaluation_to_trace(record, PROBLEM))
    assert verdict_of(read(Trace, text)) is verdict


def test_nobodys_fault_is_exported_without_an_evaluation():
    trace = evaluation_to_trace(evaluation(Verdict.INCONCLUSIVE), PROBLEM)
    assert status_of(Verdict.INCONCLUSIVE) is None
    assert trace.evaluation is None
    assert trace.solution is not None
    assert json.loads(write(trace))["ptxboard"]["message"] == "what was seen"


def test_a_pass_carries_the_largest_errors_and_times_in_milliseconds():
    trials = (
        (output("O", 0, 0.5, 0.25), output("LSE", 0, 0.125, 1.5)),
        (output("O", 0, 0.75, 0.1), output("LSE", 0, 0.0, 0.0)),
    )
    record = evaluation(Verdict.PASSED, stages=(correctness(*trials),), score=SCORE)
    written = json.loads(write(evaluation_to_trace(record, PROBLEM, solution="mine")))
    assert written["solution"] == "mine"
    assert written["definition"] == PROBLEM.name
    assert written["workload"]["uuid"] == PROBLEM.workload.uuid
    measured = written["evaluation"]
    assert measured["status"] == "PASSED"
    assert measured["timestamp"] == "2026-11-29T12:30:00+00:00"
    assert measured["environment"] == {"hardware": "NVIDIA H200", "libs": {"torch": "2.11.0"}}
    assert measured["correctness"]["max_absolute_error"] == 0.75
    assert measured["correctness"]["max_relative_error"] == 1.5
    assert measured["performance"] == {
        "latency_ms": 2.5,
        "reference_latency_ms": 5.0,
        "speedup_factor": 2.0,
    }
    assert measured["ptxboard"]["score"]["sample_count"] == 150


def test_an_error_that_is_not_finite_is_null():
    stages = (correctness((output("O", 4, None, None), output("LSE", 0, 0.0, 0.0))),)
    record = evaluation(Verdict.INCORRECT_NUMERICAL, stages=stages)
    seen = evaluation_to_trace(record, PROBLEM).evaluation.correctness
    assert seen.max_absolute_error is None
    assert [item["bad_count"] for item in seen.extra["ptxboard"]["outputs"]] == [4, 0]


def test_a_pass_without_a_score_is_no_trace():
    with pytest.raises(ValueError, match="PASSED evaluation needs a score"):
        evaluation_to_trace(evaluation(Verdict.PASSED), PROBLEM)


def test_a_record_of_another_problem_is_refused():
    other = find_problem("gemm_n256_k256")
    with pytest.raises(ValueError, match="expected gemm_n256_k256"):
        evaluation_to_trace(evaluation(Verdict.TIMEOUT), other)


def test_a_verdict_that_contradicts_its_status_is_refused():
    value = json.loads(write(evaluation_to_trace(evaluation(Verdict.TIMEOUT), PROBLEM)))
    value["evaluation"]["ptxboard"]["verdict"] = "PASSED"
    with pytest.raises(ValueError, match="goes with status PASSED; seen: TIMEOUT"):
        verdict_of(Trace.model_validate(value))


def test_a_foreign_trace_has_the_verdict_of_its_status():
    value = json.loads(write(evaluation_to_trace(evaluation(Verdict.NO_KERNEL), PROBLEM)))
    del value["evaluation"]["ptxboard"]
    assert verdict_of(Trace.model_validate(value)) is Verdict.RUNTIME_ERROR
    assert verdict_of(Trace.model_validate({**value, "evaluation": None})) is None


@pytest.mark.parametrize("binding", list(Binding))
def test_a_candidate_is_the_same_after_it_was_a_solution(binding):
    ours = candidate(binding)
    text = write(candidate_to_solution(ours, name="mine", author="alice"))
    again = solution_to_candidate(read(Solution, text), "h200")
    assert again == ours
    assert again.digest == ours.digest


def solution(**spec):
    value = json.loads(write(candidate_to_solution(candidate(), name="mine", author="alice")))
    del value["spec"]["ptxboard_binding"]
    value["spec"].update(spec)
    return Solution.model_validate(value)


def test_a_solution_without_binding_is_built_for_tvm_ffi():
    assert solution_to_candidate(solution(), "h200").binding is Binding.TVM_FFI


def test_a_triton_solution_goes_in_and_comes_out_the_same():
    given = candidate().model_copy(update={"language": Language.TRITON})
    written = candidate_to_solution(given, name="mine", author="alice")
    assert (written.spec.language.value, written.spec.binding) == ("triton", None)
    assert solution_to_candidate(written, given.target) == given


def test_a_triton_solution_of_others_has_no_binding_and_gets_the_plain_one():
    assert solution_to_candidate(solution(language="triton"), "h200").binding is Binding.C


@pytest.mark.parametrize(
    ("spec", "target", "pointer", "rule"),
    [
        ({"language": "triton"}, "host", "spec.language", "target 'host' takes language cpp"),
        (
            {"language": "triton", "binding": "tvm-ffi"},
            "h200",
            "spec.binding",
            "target 'h200' takes binding c",
        ),
        ({"language": "python"}, "h200", "spec.language", "Python is not run"),
        ({"language": "tilelang"}, "h200", "spec.language", "not supported"),
        ({"language": "cpp"}, "h200", "spec.language", "target 'h200' takes language cuda"),
        ({"language": "cuda"}, "host", "spec.language", "target 'host' takes language cpp"),
        ({"language": "cpp"}, "host", "spec.binding", "target 'host' takes binding c"),
        ({"binding": "torch"}, "h200", "spec.binding", "'torch' is not run"),
        ({"dependencies": ["numpy"]}, "h200", "spec.dependencies", "nothing is installed"),
        (
            {"destination_passing_style": False},
            "h200",
            "spec.destination_passing_style",
            "must be true",
        ),
        ({"entry_point": "kernel.cu::a b"}, "h200", "spec.entry_point", "C identifier"),
        ({}, "h900", "target", "known targets: h200, h100, b200, host"),
    ],
)
def test_a_solution_that_we_do_not_run_is_refused_in_words(spec, target, pointer, rule):
    with pytest.raises(InvalidRecord) as caught:
        solution_to_candidate(solution(**spec), target)
    (problem,) = caught.value.problems
    assert problem.pointer == pointer
    assert rule in problem.rule


def test_a_refused_solution_hears_everything_at_once():
    refused = solution(language="python", binding="torch", dependencies=["numpy"])
    with pytest.raises(InvalidRecord) as caught:
        solution_to_candidate(refused, "h200")
    pointers = [problem.pointer for problem in caught.value.problems]
    assert pointers == ["spec.language", "spec.binding", "spec.dependencies"]


def test_a_solution_that_is_too_large_is_refused_with_the_limit():
    value = json.loads(write(solution()))
    value["sources"][0]["content"] = "x" * (1 << 20)
    value["sources"][1]["content"] = "y"
    with pytest.raises(InvalidRecord, match="1048577 bytes, at most 1048576"):
        solution_to_candidate(Solution.model_validate(value), "h200")
