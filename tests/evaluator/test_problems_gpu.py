"""The full problems on a GPU: cuDNN and cuBLAS against fp32, admission, memory and refresh."""

import pytest
import torch

from evaluator.admission import admit
from evaluator.comparison import compare
from evaluator.problems import baselines, find_problem, load_problems
from evaluator.problems.baselines import baseline, baseline_version, chosen_baseline
from evaluator.problems.exact import fp32_reference
from evaluator.problems.tensors import make_inputs, reference, refresh_inputs

pytestmark = pytest.mark.gpu
GIB = 1 << 30
FULL = [name for name, problem in load_problems().items() if not problem.development]


@pytest.mark.parametrize("name", FULL)
def test_the_reference_is_close_to_fp32_and_the_fp32_pass_needs_little_memory(name):
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cuda")
    made = reference(problem)(**inputs)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    exact = fp32_reference(problem, inputs)
    assert torch.cuda.max_memory_allocated() - before < 4 * GIB
    for output, tensor in made.items():
        assert tensor.is_contiguous()
        seen = compare(output, tensor, tensor, problem.tolerance, fp32=exact[output])
        print(name, output, "rms to fp32", seen.rms_error_to_fp32)
        assert seen.rms_error_to_fp32 < 1e-2


@pytest.mark.parametrize("name", list(load_problems()))
def test_it_is_admitted(name):
    report = admit(find_problem(name), "cuda")
    print(report.to_json())
    assert report.reasons == ()


@pytest.mark.parametrize("name", ["mha_bwd_d128", "mha_bwd_d128_causal"])
def test_refreshed_inputs_stay_consistent(name):
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cuda")
    before = {key: tensor.clone() for key, tensor in inputs.items()}
    refresh_inputs(problem, 2, inputs)
    forward = find_problem(name.replace("bwd", "with_lse"))
    made = reference(forward)(**{key: inputs[key] for key in ("Q", "K", "V")})
    assert torch.equal(made["O"], inputs["O"])
    torch.testing.assert_close(made["LSE"], inputs["L"])
    for key in ("Q", "K", "V", "O", "dO"):
        assert (inputs[key] != before[key]).float().mean() > 0.9


def test_versions_are_told():
    gemm = baseline_version(find_problem("gemm_n7168_k5120"), "cuda")
    attention = baseline_version(find_problem("mha_bwd_d128"), "cuda")
    print(gemm, attention)
    assert gemm.startswith("cuBLAS 1")
    assert attention.startswith("cuDNN 9.")


@pytest.mark.parametrize("name", ["gemm_n7168_k5120", "mha_with_lse_d128", "mha_bwd_d128"])
def test_a_refresh_takes_milliseconds(name):
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cuda")
    refresh_inputs(problem, 2, inputs)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for seed in range(10):
        refresh_inputs(problem, seed, inputs)
    end.record()
    torch.cuda.synchronize()
    per_call_ms = start.elapsed_time(end) / 10
    print(name, "refresh ms", per_call_ms)
    assert per_call_ms < 20


GQA = [name for name in FULL if name.startswith("gqa")]


@pytest.mark.parametrize("name", GQA)
@pytest.mark.parametrize("library", ["FlashInfer", "PyTorch"])
def test_the_baseline_of_gqa_gives_the_references_outputs(name, library, monkeypatch):
    """Run it with and without FlashInfer's wheel: both paths must agree with plain torch."""
    if library == "PyTorch":
        monkeypatch.setattr(baselines, "_flashinfer", lambda: None)
    elif baselines._flashinfer() is None:
        pytest.skip("FlashInfer is not installed")
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cuda")
    for seed in (2, 3):
        refresh_inputs(problem, seed, inputs)
        expected, seen = reference(problem)(**inputs), baseline(problem)(**inputs)
        for output, tensor in expected.items():
            error = compare(output, seen[output], tensor, problem.tolerance)
            print(name, library, output, error.max_abs_error)
            assert error.bad_count == 0
    print(chosen_baseline(problem, "cuda"), baseline_version(problem, "cuda"))
    assert chosen_baseline(problem, "cuda").name.startswith(library)


@pytest.mark.parametrize("name", GQA)
def test_the_baseline_of_gqa_is_faster_than_plain_torch(name):
    problem = find_problem(name)
    inputs = make_inputs(problem, 1, "cuda")
    taken = {}
    for kind, run in (("reference", reference(problem)), ("baseline", baseline(problem))):
        run(**inputs)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(5):
            run(**inputs)
        end.record()
        torch.cuda.synchronize()
        taken[kind] = start.elapsed_time(end) / 5
    print(name, baseline_version(problem, "cuda"), taken, "ms")
    assert taken["baseline"] < taken["reference"]
