"""Records of our own: strict, frozen, and the same after JSON has sorted their members."""

import json

import pytest
from pydantic import ValidationError

from evaluator.problems import find_problem, load_problems
from evaluator.records import (
    Candidate,
    EvaluationRecord,
    PolicyEvidence,
    Problem,
    Source,
    Stage,
    StageResult,
    Verdict,
    canonical_json,
    stage_result_from_json,
)


@pytest.mark.parametrize("name", list(load_problems()))
def test_a_problem_keeps_its_call_order_and_digest_through_sorted_json(name):
    problem = find_problem(name)
    again = Problem.from_json(problem.to_json())
    assert again == problem
    assert again.digest == problem.digest
    assert list(again.definition.inputs) == list(problem.definition.inputs)
    assert list(again.definition.outputs) == list(problem.definition.outputs)


def test_a_problem_whose_call_order_is_not_its_definitions_is_refused():
    value = json.loads(find_problem("gemm_n256_k256").to_json())
    value["call_order"] = ["A", "C", "B"]
    with pytest.raises(ValidationError, match=r"inputs, then the outputs: A, B, C; seen: A, C, B"):
        Problem.model_validate(value)


def test_another_call_order_is_another_problem():
    value = json.loads(find_problem("gemm_n256_k256").to_json())
    value["call_order"] = ["B", "A", "C"]
    swapped = Problem.model_validate(value)
    assert list(swapped.definition.inputs) == ["B", "A"]
    assert swapped.digest != find_problem("gemm_n256_k256").digest


def policy_result():
    evidence = PolicyEvidence(command=("nvcc", "-M"), header_count=3)
    return StageResult(
        stage=Stage.POLICY, verdict=Verdict.PASSED, message="3 headers", evidence=evidence
    )


def test_a_stage_result_keeps_its_evidence_through_json():
    again = stage_result_from_json(json.loads(policy_result().to_json()))
    assert again.evidence == PolicyEvidence(command=("nvcc", "-M"), header_count=3)


def test_a_stage_result_with_another_stages_evidence_is_refused():
    value = json.loads(policy_result().to_json())
    value["stage"] = "sass"
    with pytest.raises(ValidationError, match="cubin_sha256"):
        stage_result_from_json(value)


def test_an_evaluation_keeps_its_stages_through_json():
    record = EvaluationRecord.model_validate(
        {
            "candidate": candidate("// one"),
            "problem_digest": "0" * 64,
            "environment": {
                "harness_version": "1",
                "operating_system": "Linux",
                "python": "3.12",
                "sandbox": "bubblewrap",
            },
            "stages": (policy_result(),),
            "stages_not_reached": (),
            "verdict": "PASSED",
            "message": "",
        }
    )
    again = EvaluationRecord.from_json(record.to_json())
    assert again.to_json() == record.to_json()
    assert again.stages[0].evidence == policy_result().evidence


def candidate(content, path="kernel.cu"):
    return Candidate(
        problem="gemm_n256_k256",
        target="h200",
        language="cuda",
        sources=(Source(path=path, content=content),),
        entry_file="kernel.cu",
    )


def test_a_candidates_digest_covers_every_byte():
    assert candidate("// one").digest == candidate("// one", path="./kernel.cu").digest
    assert candidate("// one").digest != candidate("// one ").digest


def test_canonical_json_is_sorted_and_holds_no_nan():
    assert canonical_json({"b": 1.5, "a": "é"}) == '{"a":"é","b":1.5}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))
