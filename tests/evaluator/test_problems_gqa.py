"""GQA's inputs stay valid, its references say what attention says, and a slip is what it claims."""

import math
from itertools import pairwise

import pytest
import torch

from evaluator.problems import find_problem, load_problems
from evaluator.problems.exact import Slip, fp32_reference
from evaluator.problems.gqa import Heads, paged_prefill
from evaluator.problems.indices import lengths_by_input
from evaluator.problems.tensors import make_inputs, reference, refresh_inputs
from evaluator.records.flashinfer import RandomInput
from evaluator.records.problem import Family
from evaluator.records.verdicts import EvaluatorFault

TWINS = [one for one in load_problems().values() if one.family is Family.GQA and one.development]
by_twin = pytest.mark.parametrize("problem", TWINS, ids=lambda problem: problem.name)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def assert_valid(problem, inputs):
    for name, lengths in lengths_by_input(problem).items():
        offsets = inputs[name]
        assert offsets.dtype == torch.int32
        assert offsets[0] == 0
        assert sorted(offsets.diff().tolist()) == sorted(lengths)
    if "kv_indices" in inputs:
        pages = inputs["kv_indices"].tolist()
        assert len(set(pages)) == len(pages)
        assert min(pages) >= 0
        assert len(pages) < max(pages) < problem.workload.axes["num_pages"]
    assert inputs["sm_scale"].item() == 0.125


@by_twin
def test_offsets_and_pages_are_valid_and_change_from_call_to_call(problem):
    inputs = make_inputs(problem, 1, "cpu")
    seen = {name: set() for name, tensor in inputs.items() if tensor.dtype == torch.int32}
    for seed in range(2, 10):
        refresh_inputs(problem, seed, inputs)
        assert_valid(problem, inputs)
        for name, contents in seen.items():
            contents.add(tuple(inputs[name].tolist()))
    assert all(len(contents) >= 4 for contents in seen.values())


@by_twin
def test_queries_and_keys_of_a_sequence_stay_together(problem):
    """One order for all offsets: pairs of lengths are those of the workload."""
    told = lengths_by_input(problem)
    inputs = make_inputs(problem, 3, "cpu")
    seen = zip(*(inputs[name].diff().tolist() for name in told), strict=True)
    assert sorted(seen) == sorted(zip(*told.values(), strict=True))


def attended(problem, inputs):
    """torch's own attention in float64, sequence by sequence, head by head."""
    output, lse = [], []
    ends = inputs["kv_indptr"].tolist()
    rows = inputs.get("qo_indptr", torch.arange(len(ends))).tolist()
    q = inputs["q"].double()
    for s in range(len(ends) - 1):
        places = slice(ends[s], ends[s + 1])
        if "kv_indices" in inputs:
            pages = inputs["kv_indices"][places].long()
            k, v = (inputs[name][pages, 0].double() for name in ("k_cache", "v_cache"))
        else:
            k, v = inputs["k"][places].double(), inputs["v"][places].double()
        mine = q[rows[s] : rows[s + 1]]
        group = mine.shape[1] // k.shape[1]
        k, v = (tensor.repeat_interleave(group, dim=1).transpose(0, 1) for tensor in (k, v))
        n, m = mine.shape[0], k.shape[1]
        mask = torch.ones(n, m, dtype=torch.bool)
        if problem.causal:
            mask = mask.tril(m - n)
        mine = mine.transpose(0, 1)
        one = torch.nn.functional.scaled_dot_product_attention(mine, k, v, attn_mask=mask)
        output.append(one.transpose(0, 1))
        scores = (mine @ k.mT / 8).masked_fill(~mask, -math.inf)
        lse.append(torch.logsumexp(scores, dim=-1).T / math.log(2))
    return torch.cat(output), torch.cat(lse)


@by_twin
def test_the_references_are_torchs_attention(problem):
    inputs = make_inputs(problem, 5, "cpu")
    output, lse = attended(problem, inputs)
    exact = fp32_reference(problem, inputs)
    torch.testing.assert_close(exact["output"].double(), output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(exact["lse"].double(), lse, atol=1e-5, rtol=1e-5)
    made = reference(problem)(**inputs)
    torch.testing.assert_close(made["output"].double(), output, atol=1e-2, rtol=4e-3)
    torch.testing.assert_close(made["lse"].double(), lse, atol=1e-5, rtol=1e-5)


def test_ragged_sequences_may_have_keys_from_before():
    """Four and five keys for two and three queries: the mask is aligned at the end."""
    problem = find_problem("gqa_ragged_prefill_causal_h4_kv2_d64_small")
    inputs = make_inputs(problem, 1, "cpu")
    offsets = {"qo_indptr": [0, 2, 5], "kv_indptr": [0, 4, 9]}
    inputs |= {name: torch.tensor(told, dtype=torch.int32) for name, told in offsets.items()}
    inputs |= {"q": inputs["q"][:5], "k": inputs["k"][:9], "v": inputs["v"][:9]}
    output, lse = attended(problem, inputs)
    made = reference(problem)(**inputs)
    torch.testing.assert_close(made["output"].double(), output, atol=1e-2, rtol=4e-3)
    torch.testing.assert_close(made["lse"].double(), lse, atol=1e-5, rtol=1e-5)


def test_rows_before_any_key_are_zero_and_minus_infinity():
    heads = Heads(query=2, kv=1, dimension=8)
    problem = paged_prefill(heads, query_lengths=(5,), kv_lengths=(3,), pages=9, small=True)
    inputs = make_inputs(problem, 1, "cpu")
    for made in (reference(problem)(**inputs), fp32_reference(problem, inputs)):
        assert made["lse"][:2].tolist() == [[-math.inf] * 2] * 2
        assert made["output"][:2].abs().max() == 0
        assert made["lse"][2:].isfinite().all()
        assert not made["output"].isnan().any()
        assert made["output"][2:].abs().min() > 0


@pytest.mark.parametrize("name", ["mha_with_lse_d64_causal_small", *(one.name for one in TWINS)])
def test_a_future_key_changes_all_rows_that_have_one(name):
    """The last row of a sequence has none; without a mask there is none to get wrong."""
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cpu")
    lse = list(problem.definition.outputs)[1]
    right, slipped = (
        fp32_reference(problem, inputs, slip)[lse] for slip in (Slip(), Slip(future_keys=1))
    )
    assert (slipped >= right).all()
    same = int((slipped == right).sum())
    if name.startswith("mha"):
        assert same == 2
    elif problem.causal:
        heads = inputs["q"].shape[1]
        assert same == heads * (inputs["qo_indptr"].numel() - 1)
    else:
        assert same == right.numel()


def test_lost_keys_are_the_last_of_each_sequence_and_never_more_than_half():
    problem = find_problem("gqa_paged_decode_h6_kv2_d64_ps1_small")
    inputs = make_inputs(problem, 1, "cpu")
    slipped = fp32_reference(problem, inputs, Slip(lost_keys=50))
    shorter = dict(inputs)
    ends = inputs["kv_indptr"].tolist()
    kept, pages = [0], []
    for first, end in pairwise(ends):
        count = (end - first) - min(50, (end - first) // 2)
        pages += inputs["kv_indices"][first : first + count].tolist()
        kept.append(kept[-1] + count)
    shorter["kv_indptr"] = torch.tensor(kept, dtype=torch.int32)
    shorter["kv_indices"] = torch.tensor(pages, dtype=torch.int32)
    expected = fp32_reference(problem, shorter)
    assert all(torch.equal(slipped[name], expected[name]) for name in expected)


def test_lost_columns_of_a_gemm_are_its_last():
    problem = find_problem("gemm_n256_k256")
    inputs = make_inputs(problem, 1, "cpu")
    seen = fp32_reference(problem, inputs, Slip(lost_keys=64))["C"]
    expected = inputs["A"][:, :192].float() @ inputs["B"][:, :192].float().T
    torch.testing.assert_close(seen, expected)


def test_a_backward_pass_that_loses_keys_leaves_their_gradients_at_zero():
    problem = find_problem("mha_bwd_d64_small")
    inputs = make_inputs(problem, 1, "cpu")
    right = fp32_reference(problem, inputs)
    seen = fp32_reference(problem, inputs, Slip(lost_keys=64))
    for name in ("dK", "dV"):
        assert seen[name][:, :, 192:].abs().max() == 0
        torch.testing.assert_close(seen[name][:, :, :192], right[name][:, :, :192])
    assert (seen["dQ"] - right["dQ"]).abs().max() > 0.1


def test_an_operator_of_another_family_has_no_slips():
    other = find_problem("gemm_n256_k256").model_copy(update={"family": Family.OTHER})
    inputs = make_inputs(other, 1, "cpu")
    with pytest.raises(EvaluatorFault, match="family 'other' has no slips"):
        fp32_reference(other, inputs, Slip(lost_keys=1))


def test_inputs_that_tell_different_numbers_of_lengths_are_our_fault():
    problem = find_problem("gqa_ragged_prefill_causal_h4_kv2_d64_small")
    told = RandomInput.model_validate({"type": "random", "lengths": [330]})
    inputs = {**problem.workload.inputs, "kv_indptr": told}
    workload = problem.workload.model_copy(update={"inputs": inputs})
    broken = problem.model_copy(update={"workload": workload})
    with pytest.raises(EvaluatorFault, match="different numbers of lengths: qo_indptr 5, kv_ind"):
        make_inputs(broken, 1, "cpu")
