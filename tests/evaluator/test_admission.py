"""A problem on which a wrong answer passes is refused, and the report says which and how."""

import uuid
from functools import cache

import pytest
import torch

from evaluator.admission import admit
from evaluator.problems import find_problem, load_problems
from evaluator.records.admission import AdmissionReport
from evaluator.records.flashinfer import (
    ConstAxis,
    Definition,
    RandomInput,
    TensorSpec,
    Workload,
)
from evaluator.records.problem import Baseline, Family, Problem, Tolerance
from evaluator.records.verdicts import EvaluatorFault

TWINS = [problem.name for problem in load_problems().values() if problem.development]


def row_operator(
    name: str, reference: str, columns: int, tolerance: Tolerance, rows: int = 4
) -> Problem:
    """An operator that maps a float32 row to a float32 row."""
    row = TensorSpec(shape=("rows", "columns"), dtype="float32")
    definition = Definition(
        name=name,
        op_type="row",
        axes={
            "rows": ConstAxis(type="const", value=rows),
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
    return row_operator("softmax_393216", text, 393_216, tolerance, rows=1)


REFUSING = {
    "zeros",
    "mean",
    "constant",
    "input_copy",
    "shuffled",
    "stale_seed",
    "missing_tail",
    "lost_keys",
    "future_key",
    "fp8_inputs",
}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Small tensors on a shared machine: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def report():
    """Of a twin, made once."""
    return cache(lambda name: admit(find_problem(name), "cpu"))


@pytest.mark.parametrize("name", TWINS)
def test_it_admits_the_small_twins_with_every_wrong_answer_failing(name, report):
    seen = report(name)
    assert seen.reasons == ()
    assert seen.caveats == ()
    assert seen.admitted
    causal = find_problem(name).causal
    missing = () if causal else ("future_key: there is no causal mask",)
    assert seen.not_tried == missing
    tried = {outcome.mutant for outcome in seen.outcomes}
    assert tried == {*REFUSING, "missing_corner", "fp8_operands"} - (
        set() if causal else {"future_key"}
    )


@pytest.mark.parametrize("name", TWINS)
def test_each_wrong_answer_is_counted_in_each_output(name, report):
    outcomes = report(name).outcomes
    outputs = list(find_problem(name).definition.outputs)
    for mutant in {outcome.mutant for outcome in outcomes}:
        rows = [outcome for outcome in outcomes if outcome.mutant == mutant]
        assert [row.output for row in rows] == outputs
        assert any(row.margin > 2 for row in rows)
        for row in rows:
            assert (row.bad_count > 0) is (row.margin > 1)
            assert row.passes is (row.bad_count == 0)


def test_a_missing_tail_is_told_by_the_tail_alone(report):
    """256 x 256 elements: half of the rows, or the last 2048, are zero; hardly one should be."""
    rows = report("gemm_n256_k256").outcomes
    bad = {row.mutant: row.bad_count for row in rows}
    assert 128 * 256 - 40 <= bad["missing_tail"] <= 128 * 256
    assert 2_040 <= bad["missing_corner"] <= 2_048


def test_a_missing_tail_is_missing_in_every_head(report):
    """2 heads of 256 rows: 128 rows of each."""
    rows = report("mha_with_lse_d64_small").outcomes
    bad = {(row.mutant, row.output): row.bad_count for row in rows}
    assert bad["missing_tail", "LSE"] == 2 * 128
    assert 0.85 * 2 * 128 * 64 < bad["missing_tail", "O"] <= 2 * 128 * 64


def test_one_key_too_many_is_worst_for_the_first_rows(report):
    """Row i sees one of i + 2 keys that it must not: early rows are far off, late ones near."""
    rows = report("mha_with_lse_d64_causal_small").outcomes
    seen = next(row for row in rows if (row.mutant, row.output) == ("future_key", "LSE"))
    assert 20 <= seen.bad_count <= 60
    assert seen.max_abs_error > 1


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
    assert [reason for reason in report.reasons if "a copy of an input passes" in reason]
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


def test_a_report_reads_back_and_names_the_problem_by_digest(report):
    problem = find_problem("mha_with_lse_d64_small")
    seen = report(problem.name)
    assert AdmissionReport.from_json(seen.to_json()) == seen
    assert seen.problem_digest == problem.digest
    zeros = seen.outcomes[0]
    assert (zeros.mutant, zeros.output, zeros.element_count) == ("zeros", "O", 32_768)
    assert zeros.bad_fraction == pytest.approx(0.92, abs=0.02)
    assert zeros.max_abs_error == pytest.approx(0.68, abs=0.2)
    assert zeros.margin == pytest.approx((zeros.max_abs_error - 0.0067) / 0.01, rel=0.02)


def test_operands_of_8_bits_that_pass_are_a_caveat_and_no_refusal():
    """The mean of many 16-bit values drowns in the tolerance; the fp32 input does not."""
    text = "def run(x, z):\n    return x.float().mean(dim=-1, keepdim=True) + z\n"
    one = row_operator("means", text, 4_096, Tolerance())
    wide = one.definition.inputs["x"]
    narrow = TensorSpec(shape=wide.shape, dtype="bfloat16")
    definition = one.definition.model_copy(update={"inputs": {"x": narrow, "z": wide}})
    problem = Problem(
        **{**dict(one), "definition": definition, "call_order": definition.call_order}
    )
    seen = admit(problem, "cpu")
    assert seen.reasons == ()
    whole = "output 'y': 16-bit inputs rounded to 8 bits pass at atol 0.01, rtol 0.01 (largest "
    assert seen.caveats[0].startswith(whole)


def test_few_elements_that_give_a_wrong_answer_away_are_told():
    """Zero nearly everywhere: one value of 4096 in each row is far off."""
    text = (
        "import torch\n\ndef run(x):\n    y = torch.zeros_like(x)\n"
        "    y[..., 7] = x.abs().sum(dim=-1)\n    return y\n"
    )
    seen = admit(row_operator("needle", text, 4_096, Tolerance()), "cpu")
    assert "zeros: only 4 of 16384 elements of output 'y' give it away" in seen.caveats
    corner = "output 'y': the end of the last head left at zero passes"
    assert [line for line in seen.caveats if line.startswith(corner)]


def test_infinity_in_the_reference_is_allowed_and_no_constant_reaches_it():
    text = "import torch\n\ndef run(x):\n    return torch.log(x.clamp(min=0)) * 9\n"
    seen = admit(row_operator("logarithm", text, 64, Tolerance()), "cpu")
    assert seen.reasons == ()
    means = [row for row in seen.outcomes if row.mutant in ("mean", "constant", "zeros")]
    assert [row.margin for row in means] == [None, None, None]
    assert [row.max_abs_error is not None for row in means] == [True, True, True]


def test_a_reference_that_needs_a_gpu_is_told_where_there_is_none():
    text = (
        "import torch\n\ndef run(x):\n    q = x.view(1, 1, *x.shape).to(torch.bfloat16)\n"
        "    attention = torch.ops.aten._scaled_dot_product_cudnn_attention\n"
        "    return attention(q, q, q, None, True, 0.0, False, False)[0][0, 0]\n"
    )
    with pytest.raises(
        EvaluatorFault, match=r"sdpa: .* does not run on cpu; admit it on a GPU, or"
    ):
        admit(row_operator("sdpa", text, 64, Tolerance()), "cpu")


def test_a_corner_is_small_by_nature_and_no_thin_margin(monkeypatch):
    monkeypatch.setattr("evaluator.admission.mutants.TAIL_ELEMENTS", 8)
    text = "def run(x):\n    return x.exp() + 1\n"
    seen = admit(row_operator("exponential", text, 4_096, Tolerance()), "cpu")
    tail = next(row for row in seen.outcomes if row.mutant == "missing_corner")
    assert (tail.bad_count, tail.element_count) == (8, 16_384)
    assert seen.caveats == ()
