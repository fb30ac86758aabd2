"""Which baseline a GQA problem is measured against here, and how FlashInfer is called.

No GPU and no FlashInfer are needed: both stand at the edge of the process and are replaced there.
What their kernels compute is shown by tests/evaluator/test_problems_gpu.py on a GPU.
"""

import math
import types

import pytest
import torch

from evaluator.comparison import compare
from evaluator.problems import baselines, find_problem
from evaluator.problems.baselines import baseline, baseline_version, chosen_baseline
from evaluator.problems.catalogue import build_catalogue
from evaluator.problems.gqa import Heads, paged_decode, paged_prefill, ragged_prefill
from evaluator.problems.tensors import make_inputs, reference, refresh_inputs

HEADS = Heads(query=4, kv=2, dimension=16)
SMALL = (
    ragged_prefill(HEADS, sequences=3, tokens=20),
    paged_prefill(HEADS, query_lengths=(3, 6), kv_lengths=(8, 6), pages=40),
    paged_decode(HEADS, batch=4, indices=30, pages=64),
)
FULL = [problem for problem in build_catalogue() if problem.baseline.name == "FlashInfer"]
by_problem = pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)


class OnGpu(torch.Tensor):
    """A CPU tensor that says it is on a GPU."""

    is_cuda = True


class Wrapper:
    """FlashInfer's plan, then run, computed by the reference."""

    def __init__(self, log, problem, name, workspace, layout, **options):
        self.log, self.problem, self.name = log, problem, name
        assert layout == "NHD"
        assert workspace.dtype == torch.uint8
        self.log.append(("made", name, options))

    def plan(self, *given, **options):
        self.given, self.options = given, options
        self.log.append(("plan", self.name, options))

    def run(self, q, *kv, return_lse):
        assert return_lse
        self.log.append(("run", self.name, {}))
        index = [item for item in self.given if isinstance(item, torch.Tensor)]
        if isinstance(kv[0], tuple):
            kv, index = kv[0], [*index[:-1]]
        scale = torch.tensor(self.options["sm_scale"])
        values = dict(zip(self.problem.definition.inputs, (q, *kv, *index, scale), strict=True))
        made = reference(self.problem)(**values)
        return made["output"], made["lse"]


@pytest.fixture
def flashinfer(monkeypatch):
    """`flashinfer(problem)` installs a stand-in and returns the log of its calls."""

    def install(problem):
        log = []
        module = types.SimpleNamespace(__version__="0.6.14")
        for name in (
            "BatchPrefillWithRaggedKVCacheWrapper",
            "BatchPrefillWithPagedKVCacheWrapper",
            "BatchDecodeWithPagedKVCacheWrapper",
        ):
            make = lambda *given, name=name, **more: Wrapper(log, problem, name, *given, **more)  # noqa: E731
            setattr(module, name, make)
        monkeypatch.setattr(baselines, "_flashinfer", lambda: module)
        return log

    monkeypatch.setattr(baselines, "_workspace", lambda device: torch.zeros(8, dtype=torch.uint8))
    return install


def on_gpu(inputs):
    return {**inputs, "q": inputs["q"].as_subclass(OnGpu)}


@by_problem
def test_flashinfer_is_planned_once_for_inputs_and_again_when_they_change(problem, flashinfer):
    log = flashinfer(problem)
    inputs = make_inputs(problem, 1, "cpu")
    for seed in (None, None, 2):
        if seed is not None:
            refresh_inputs(problem, seed, inputs)
        seen = baseline(problem)(**on_gpu(inputs))
        expected = reference(problem)(**inputs)
        for name, tensor in expected.items():
            assert (
                compare(
                    name, seen[name].as_subclass(torch.Tensor), tensor, problem.tolerance
                ).bad_count
                == 0
            )
    assert [step for step, _, _ in log] == ["made", "plan", "run", "run", "made", "plan", "run"]
    name = problem.baseline.call.split(".")[1]
    assert {wrapper for _, wrapper, _ in log} == {name}


@by_problem
def test_flashinfer_is_told_scale_types_and_mask(problem, flashinfer):
    log = flashinfer(problem)
    baseline(problem)(**on_gpu(make_inputs(problem, 1, "cpu")))
    told = next(options for step, _, options in log if step == "plan")
    assert told["sm_scale"] == 0.25
    assert (told["q_data_type"], told["kv_data_type"]) == (torch.bfloat16, torch.bfloat16)
    assert told.get("causal", False) is problem.causal


@pytest.mark.parametrize("problem", FULL, ids=lambda problem: problem.name)
def test_what_ran_is_recorded(problem, monkeypatch):
    monkeypatch.setattr(
        baselines, "_flashinfer", lambda: types.SimpleNamespace(__version__="0.6.14")
    )
    assert chosen_baseline(problem, "cuda") == problem.baseline
    own = f"torch {torch.__version__}"
    assert baseline_version(problem, "cuda") == f"FlashInfer 0.6.14 ({own})"
    monkeypatch.setattr(baselines, "_flashinfer", lambda: None)
    chosen = chosen_baseline(problem, "cuda")
    assert (chosen.name, chosen.call) == (
        "PyTorch flash attention",
        "torch.ops.aten._flash_attention_forward",
    )
    seen = baseline_version(problem, "cuda")
    assert seen == f"{own} (CUDA {torch.version.cuda}); FlashInfer is not installed"
    assert chosen_baseline(problem, "cpu").call == "the reference itself"
    assert baseline_version(problem, "cpu") == f"{own} (CPU)"


def test_other_problems_keep_their_baseline():
    problem = find_problem("mha_bwd_d128")
    assert chosen_baseline(problem, "cuda") == problem.baseline


@by_problem
def test_pytorch_is_called_with_lengths_that_fit_and_its_logarithm_is_converted(
    problem, monkeypatch
):
    """The operator's log-sum-exp is natural, and heads come first."""
    monkeypatch.setattr(baselines, "_flashinfer", lambda: None)
    inputs = make_inputs(problem, 1, "cpu")
    expected = reference(problem)(**inputs)

    def attention(q, k, v, rows, ends, longest_q, longest_kv, dropout, causal, debug, *, scale):
        assert (dropout, causal, debug, scale) == (0.0, problem.causal, False, 0.25)
        assert longest_q >= int(rows.diff().max())
        assert longest_kv >= int(ends.diff().max())
        assert k.shape == v.shape == (int(ends[-1]), 2, 16)
        assert (rows.dtype, int(rows[-1])) == (torch.int32, q.shape[0])
        return expected["output"], expected["lse"].T * math.log(2), None, None, None

    packet = types.SimpleNamespace(_flash_attention_forward=attention)
    monkeypatch.setattr(baselines, "ATEN", packet)
    seen = baseline(problem)(**on_gpu(inputs))
    torch.testing.assert_close(seen["lse"], expected["lse"])
    assert seen["lse"].is_contiguous()
    assert torch.equal(seen["output"], expected["output"])
