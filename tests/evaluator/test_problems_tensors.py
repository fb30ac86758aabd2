"""Inputs repeat by seed and stay valid when refreshed; references say what mathematics says."""

import math

import pytest
import torch

from evaluator.problems import exact, find_problem, load_problems
from evaluator.problems.baselines import baseline, baseline_version
from evaluator.problems.exact import fp32_reference
from evaluator.problems.tensors import (
    empty_outputs,
    fill_inputs,
    make_inputs,
    reference,
    refresh_inputs,
)
from evaluator.records import EvaluatorFault

TWINS = [problem for problem in load_problems().values() if problem.development]
BACKWARD = [problem for problem in TWINS if "bwd" in problem.name]
by_name = pytest.mark.parametrize("problem", TWINS, ids=lambda problem: problem.name)
by_backward = pytest.mark.parametrize("problem", BACKWARD, ids=lambda problem: problem.name)


@by_name
def test_equal_seeds_give_equal_inputs_and_others_do_not(problem):
    first, again = make_inputs(problem, 7, "cpu"), make_inputs(problem, 7, "cpu")
    other = make_inputs(problem, 8, "cpu")
    assert list(first) == list(problem.definition.inputs)
    for name, tensor in first.items():
        assert torch.equal(tensor, again[name])
        if tensor.is_floating_point() and tensor.ndim:
            assert (tensor != other[name]).float().mean() > 0.9


@by_name
def test_filling_in_place_depends_on_the_seed_alone(problem):
    expected = make_inputs(problem, 7, "cpu")
    inputs = make_inputs(problem, 99, "cpu")
    addresses = {name: tensor.data_ptr() for name, tensor in inputs.items()}
    fill_inputs(problem, 7, inputs)
    assert {name: tensor.data_ptr() for name, tensor in inputs.items()} == addresses
    assert all(torch.equal(inputs[name], expected[name]) for name in expected)


@by_name
def test_random_inputs_are_standard_normal(problem):
    inputs = make_inputs(problem, 3, "cpu")
    for name, tensor in inputs.items():
        if name in ("O", "L") or not tensor.ndim or not tensor.is_floating_point():
            continue
        values = tensor.float()
        limit = 5 / math.sqrt(values.numel())
        assert abs(values.mean()) < limit
        assert values.std() == pytest.approx(1.0, abs=limit)


@by_name
def test_outputs_have_the_shapes_and_dtypes_of_the_definition(problem):
    made = reference(problem)(**make_inputs(problem, 1, "cpu"))
    for name, expected in empty_outputs(problem, "cpu").items():
        assert (made[name].shape, made[name].dtype) == (expected.shape, expected.dtype)
        assert made[name].is_contiguous()
        assert made[name].isfinite().all()


@by_name
def test_the_reference_is_the_fp32_reference_rounded(problem):
    inputs = make_inputs(problem, 1, "cpu")
    made, exact = reference(problem)(**inputs), fp32_reference(problem, inputs)
    assert list(made) == list(exact) == list(problem.definition.outputs)
    for name, tensor in exact.items():
        assert tensor.dtype == torch.float32
        error = (made[name].float() - tensor).square().mean() / tensor.square().mean()
        assert error.sqrt() < 3e-3


@by_name
def test_the_fp32_reference_is_the_same_in_small_blocks(problem, monkeypatch):
    inputs = make_inputs(problem, 1, "cpu")
    whole = fp32_reference(problem, inputs)
    monkeypatch.setattr(exact, "MAX_SCORES", 256 * 48)
    for name, tensor in fp32_reference(problem, inputs).items():
        torch.testing.assert_close(tensor, whole[name], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_and_its_gradients_agree_with_torch_autograd(causal):
    """Against torch's own attention and autograd in float64, which know nothing of our text."""
    ending = "_causal_small" if causal else "_small"
    problem = find_problem(f"mha_bwd_d64{ending}")
    inputs = make_inputs(problem, 5, "cpu")
    q, k, v = (inputs[name].double().requires_grad_() for name in ("Q", "K", "V"))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    out.backward(inputs["dO"].double())
    exact = fp32_reference(problem, inputs)
    for name, tensor in (("dQ", q), ("dK", k), ("dV", v)):
        torch.testing.assert_close(exact[name].double(), tensor.grad, atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(inputs["O"].double(), out.detach(), atol=1e-2, rtol=1e-2)


def test_the_log_sum_exp_is_in_natural_logarithm_and_sees_the_mask():
    problem = find_problem("mha_with_lse_d64_causal_small")
    inputs = {name: torch.zeros_like(t) for name, t in make_inputs(problem, 1, "cpu").items()}
    for made in (reference(problem)(**inputs), fp32_reference(problem, inputs)):
        expected = torch.arange(1, 257).log().expand(1, 2, 256)
        torch.testing.assert_close(made["LSE"], expected)
        assert made["LSE"][0, 0, -1].item() == pytest.approx(math.log(256))


@by_backward
def test_backward_inputs_belong_to_one_forward_pass(problem):
    assert_consistent(problem, make_inputs(problem, 11, "cpu"))


def assert_consistent(problem, inputs):
    forward = find_problem(problem.name.replace("bwd", "with_lse"))
    made = fp32_reference(forward, {name: inputs[name] for name in ("Q", "K", "V")})
    assert torch.equal(made["O"].to(torch.bfloat16).isfinite(), inputs["O"].isfinite())
    torch.testing.assert_close(inputs["O"].float(), made["O"], atol=4e-3, rtol=8e-3)
    torch.testing.assert_close(inputs["L"], made["LSE"], atol=1e-4, rtol=1e-5)


@by_backward
def test_refreshed_backward_inputs_are_new_and_still_consistent(problem):
    inputs = make_inputs(problem, 11, "cpu")
    addresses = {name: tensor.data_ptr() for name, tensor in inputs.items()}
    for seed in range(20, 26):
        before = {name: tensor.clone() for name, tensor in inputs.items()}
        refresh_inputs(problem, seed, inputs)
        for name in ("Q", "K", "V", "O", "dO"):
            assert (inputs[name] != before[name]).float().mean() > 0.3, name
        assert_consistent(problem, inputs)
    assert {name: tensor.data_ptr() for name, tensor in inputs.items()} == addresses


@by_backward
def test_refreshed_backward_inputs_have_another_answer(problem):
    inputs = make_inputs(problem, 11, "cpu")
    before = reference(problem)(**inputs)
    refresh_inputs(problem, 12, inputs)
    after = reference(problem)(**inputs)
    assert all(not torch.allclose(before[name], after[name], atol=0.1) for name in before)


@pytest.mark.parametrize("name", ["gemm_n256_k256", "mha_with_lse_d64_small"])
def test_refreshing_independent_inputs_draws_them_anew(name):
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cpu")
    refresh_inputs(problem, 2, inputs)
    expected = make_inputs(problem, 2, "cpu")
    assert all(torch.equal(inputs[key], expected[key]) for key in expected)


def test_the_baseline_of_a_twin_is_torch_and_says_its_version():
    problem = find_problem("gemm_n256_k256")
    inputs = make_inputs(problem, 1, "cpu")
    assert torch.equal(baseline(problem)(**inputs)["C"], inputs["A"] @ inputs["B"].T)
    assert baseline_version(problem, "cpu") == f"torch {torch.__version__} (CPU)"


def test_a_reference_with_too_few_outputs_is_our_fault():
    problem = find_problem("mha_with_lse_d64_small")
    text = "def run(Q, K, V):\n    return Q\n"
    definition = problem.definition.model_copy(update={"reference": text})
    broken = problem.model_copy(update={"definition": definition})
    with pytest.raises(EvaluatorFault, match="returned 1 values, expected 2"):
        reference(broken)(**make_inputs(problem, 1, "cpu"))
