"""A problem on which a wrong answer passes is refused, and the report says which and how."""

import json
import uuid

import pytest

from evaluator.admission import MUTANTS, admit
from evaluator.problems import find_problem, load_problems
from evaluator.records.flashinfer import (
    ConstAxis,
    Definition,
    RandomInput,
    TensorSpec,
    Workload,
)
from evaluator.records.problem import Baseline, Family, Problem, Tolerance

TWINS = [problem.name for problem in load_problems().values() if problem.development]


def row_operator(name: str, reference: str, columns: int, tolerance: Tolerance) -> Problem:
    """An operator that maps a float32 row to a float32 row."""
    row = TensorSpec(shape=("rows", "columns"), dtype="float32")
    definition = Definition(
        name=name,
        op_type="row",
        axes={
            "rows": ConstAxis(type="const", value=4),
            "columns": ConstAxis(type="const", value=columns),
        },
        inputs={"x": row},
        outputs={"y": row},
        reference=reference,
    )
    return Problem(
        name=name,
        title=name,
        family=Family.OTHER,
        definition=definition,
        workload=Workload(
            axes={}, inputs={"x": RandomInput(type="random")}, uuid=str(uuid.UUID(int=1))
        ),
        tolerance=tolerance,
        flop_count=1,
        byte_count=1,
        baseline=Baseline(name="torch", call="the reference itself"),
        targets=("host",),
    )


def softmax(tolerance: Tolerance) -> Problem:
    text = "import torch\n\ndef run(x):\n    return torch.softmax(x, dim=-1)\n"
    return row_operator("softmax_393216", text, 393_216, tolerance)


@pytest.mark.parametrize("name", TWINS)
def test_it_admits_the_small_twins_with_every_wrong_answer_failing(name):
    report = admit(find_problem(name), "cpu")
    assert report.reasons == ()
    assert report.caveats == ()
    assert report.admitted
    assert {outcome.mutant for outcome in report.outcomes} == set(MUTANTS)


def test_it_refuses_a_softmax_over_393216_values_because_zeros_pass():
    report = admit(softmax(Tolerance()), "cpu")
    assert not report.admitted
    zeros = [reason for reason in report.reasons if "all zeros pass" in reason]
    assert len(zeros) == 1
    assert zeros[0].startswith("output 'y': all zeros pass at atol 0.01, rtol 0.01 (largest error ")
    assert any("8 bits" in reason for reason in report.reasons)


def test_it_admits_the_same_softmax_with_a_tolerance_of_its_size():
    report = admit(softmax(Tolerance(atol=1e-8, rtol=1e-2)), "cpu")
    assert report.reasons == ()


def test_it_refuses_an_operator_that_a_copy_of_the_input_solves():
    text = "def run(x):\n    return x * 1.0001\n"
    report = admit(row_operator("almost_identity", text, 64, Tolerance()), "cpu")
    assert [reason for reason in report.reasons if "a copy of the first input passes" in reason]
    assert not [reason for reason in report.reasons if "zeros" in reason]


def test_it_refuses_a_reference_that_holds_nan():
    text = "import torch\n\ndef run(x):\n    return torch.sqrt(x)\n"
    report = admit(row_operator("root", text, 64, Tolerance()), "cpu")
    nan = [reason for reason in report.reasons if "NaN" in reason]
    assert nan
    assert nan[0].startswith("reference output 'y' holds ")


def test_it_refuses_a_reference_that_does_not_repeat():
    text = "import torch\n\ndef run(x):\n    return x + torch.randn(x.shape)\n"
    report = admit(row_operator("dice", text, 64, Tolerance()), "cpu")
    assert [reason for reason in report.reasons if "differs from itself" in reason]


def test_it_refuses_one_output_that_is_constant_beside_one_that_is_fine():
    """A wrong answer replaces one output only, so a good output covers for none."""
    text = "import torch\n\ndef run(x):\n    return 3 * x, torch.ones_like(x)\n"
    one = row_operator("two_outputs", text, 64, Tolerance())
    spec = one.definition.outputs["y"]
    definition = one.definition.model_copy(update={"outputs": {"y": spec, "z": spec}})
    problem = Problem(
        **{**dict(one), "definition": definition, "call_order": definition.call_order}
    )
    reasons = admit(problem, "cpu").reasons
    assert reasons
    assert all(reason.startswith("output 'z'") for reason in reasons)


def test_its_report_is_json_and_names_the_problem_by_digest():
    problem = find_problem("mha_with_lse_d64_small")
    report = json.loads(admit(problem, "cpu").to_json())
    assert report["admitted"] is True
    assert report["problem_digest"] == problem.digest
    assert report["outcomes"][0] == {
        "mutant": "zeros",
        "output": "O",
        "bad_fraction": pytest.approx(0.92, abs=0.02),
        "max_abs_error": pytest.approx(0.68, abs=0.2),
    }
