"""The tuned library that a speedup is measured against: which one it is here, and its call.

In      a Problem; its inputs by name; the device that they are on
Out     outputs by name, as the reference returns them; name, call and version for the record
Raises  EvaluatorFault where the call returns something else than the definition says
Source  FlashInfer's wrappers (plan, then run) with its log-sum-exp in base 2; aten's variable
        length flash attention, whose log-sum-exp is natural and is divided by ln 2

Grouped-query attention is measured against FlashInfer where its wheel can be imported, else against
PyTorch's own flash attention, which gathers pages first; every record names the one that ran. A
FlashInfer call is planned when a set of inputs is first seen, outside what a CUPTI span covers of
later calls, as a server plans once for all layers.
"""

import ctypes
import importlib
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from evaluator.problems.indices import lengths_by_input
from evaluator.problems.tensors import Operator, Tensors, reference
from evaluator.records.flashinfer import ScalarInput
from evaluator.records.problem import Baseline, Family, Problem

ATEN = torch.ops.aten
WORKSPACE_BYTES = 256 << 20
TENSOR_CORE_GROUP = 4
TORCH_CALL = "torch.ops.aten._flash_attention_forward"
REFERENCE_CALL = "the reference itself"


def baseline(problem: Problem) -> Operator:
    """Called like `reference`.

    A full GEMM's or attention's reference is that call itself (cuBLAS, cuDNN), and a twin's too.
    """
    if problem.baseline.name != "FlashInfer":
        return reference(problem)
    return lambda **inputs: _grouped(problem, inputs)


def chosen_baseline(problem: Problem, device: torch.device | str) -> Baseline:
    """What `baseline` calls on this machine, for the record."""
    if problem.baseline.name != "FlashInfer":
        return problem.baseline
    if torch.device(device).type != "cuda":
        return Baseline(name="torch", call=REFERENCE_CALL)
    if _flashinfer() is None:
        return Baseline(name="PyTorch flash attention", call=TORCH_CALL)
    return problem.baseline


def baseline_version(problem: Problem, device: torch.device | str) -> str:
    """Name and version of what really computes the baseline on `device`, with torch's own."""
    own = f"torch {torch.__version__}"
    if torch.device(device).type != "cuda":
        return f"{own} (CPU)"
    if problem.family is Family.GEMM:
        return f"cuBLAS {_cublas_version()} ({own})"
    if problem.baseline.name == "cuDNN":
        return f"cuDNN {_cudnn_version()} ({own})"
    if problem.baseline.name == "FlashInfer":
        return _flashinfer_version(own)
    return f"{own} (CUDA {torch.version.cuda})"


def _grouped(problem: Problem, inputs: Tensors) -> Tensors:
    if not inputs["q"].is_cuda:
        return reference(problem)(**inputs)
    run = _torch_flash if _flashinfer() is None else _planned
    with torch.no_grad():
        output, lse = run(problem, inputs)
    return {"output": output, "lse": lse}


def _torch_flash(problem: Problem, inputs: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    q, ends = inputs["q"], inputs["kv_indptr"]
    rows = inputs.get("qo_indptr")
    if rows is None:
        rows = torch.arange(len(ends), dtype=torch.int32, device=q.device)
    k, v = _keys_and_values(inputs)
    longest_q, longest_kv = _longest(problem)
    output, lse, *_ = ATEN._flash_attention_forward(
        q, k, v, rows, ends, longest_q, longest_kv, 0.0, problem.causal, False,
        scale=_scale(problem),
    )  # fmt: skip
    return output, lse.T.contiguous() / math.log(2)


def _keys_and_values(inputs: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    if "kv_indices" not in inputs:
        return inputs["k"], inputs["v"]
    pages = inputs["kv_indices"]
    return inputs["k_cache"][pages].flatten(0, 1), inputs["v_cache"][pages].flatten(0, 1)


def _longest(problem: Problem) -> tuple[int, int]:
    """The longest sequence of queries and of keys, which no call changes."""
    lengths = lengths_by_input(problem)
    return max(lengths.get("qo_indptr", (1,))), max(lengths["kv_indptr"])


def _scale(problem: Problem) -> float:
    told = problem.workload.inputs["sm_scale"]
    assert isinstance(told, ScalarInput)
    return float(told.value)


_plans: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
Run = Callable[[Tensors], tuple[torch.Tensor, torch.Tensor]]


def _planned(problem: Problem, inputs: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    """By a plan that lives as long as the offsets it was made from, and as their contents."""
    offsets = inputs["kv_indptr"]
    versions = tuple(inputs[name]._version for name in inputs if name.startswith(("qo_", "kv_")))
    known = _plans.get(offsets)  # type: ignore[no-untyped-call]
    if known is None or known[0] != versions:
        known = versions, _plan(problem, inputs)
        _plans[offsets] = known
    run: Run = known[1]
    return run(inputs)


def _plan(problem: Problem, inputs: Tensors) -> Run:
    if "kv_indices" not in inputs:
        return _plan_ragged(problem, inputs)
    if "qo_indptr" in inputs:
        return _plan_paged(problem, inputs)
    return _plan_decode(problem, inputs)


def _plan_ragged(problem: Problem, inputs: Tensors) -> Run:
    library, q, k = _flashinfer(), inputs["q"], inputs["k"]
    wrapper = library.BatchPrefillWithRaggedKVCacheWrapper(_workspace(q.device), "NHD")
    wrapper.plan(
        inputs["qo_indptr"],
        inputs["kv_indptr"],
        q.shape[1],
        k.shape[1],
        q.shape[2],
        causal=problem.causal,
        sm_scale=_scale(problem),
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return lambda given: wrapper.run(given["q"], given["k"], given["v"], return_lse=True)


def _plan_paged(problem: Problem, inputs: Tensors) -> Run:
    library, q, cache_ = _flashinfer(), inputs["q"], inputs["k_cache"]
    wrapper = library.BatchPrefillWithPagedKVCacheWrapper(_workspace(q.device), "NHD")
    wrapper.plan(
        inputs["qo_indptr"],
        inputs["kv_indptr"],
        inputs["kv_indices"],
        _last_page_lengths(inputs),
        q.shape[1],
        cache_.shape[2],
        q.shape[2],
        cache_.shape[1],
        causal=problem.causal,
        sm_scale=_scale(problem),
        q_data_type=q.dtype,
        kv_data_type=cache_.dtype,
    )
    return lambda given: _run_paged(wrapper, given)


def _plan_decode(problem: Problem, inputs: Tensors) -> Run:
    library, q, cache_ = _flashinfer(), inputs["q"], inputs["k_cache"]
    wrapper = library.BatchDecodeWithPagedKVCacheWrapper(
        _workspace(q.device),
        "NHD",
        use_tensor_cores=q.shape[1] // cache_.shape[2] > TENSOR_CORE_GROUP,
    )
    wrapper.plan(
        inputs["kv_indptr"],
        inputs["kv_indices"],
        _last_page_lengths(inputs),
        q.shape[1],
        cache_.shape[2],
        q.shape[2],
        cache_.shape[1],
        sm_scale=_scale(problem),
        q_data_type=q.dtype,
        kv_data_type=cache_.dtype,
    )
    return lambda given: _run_paged(wrapper, given)


def _run_paged(wrapper: Any, given: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    output, lse = wrapper.run(given["q"], (given["k_cache"], given["v_cache"]), return_lse=True)
    return output, lse


def _last_page_lengths(inputs: Tensors) -> torch.Tensor:
    """Pages are full: their size is 1."""
    offsets, size = inputs["kv_indptr"], inputs["k_cache"].shape[1]
    return torch.full_like(offsets[1:], size)


@cache
def _workspace(device: torch.device) -> torch.Tensor:
    """Shared by all plans: one call runs at a time."""
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)


@cache
def _flashinfer() -> Any:
    """The module, or None where it cannot be imported."""
    try:
        return importlib.import_module("flashinfer")
    except (ImportError, OSError, RuntimeError):
        return None


def _flashinfer_version(own: str) -> str:
    library = _flashinfer()
    if library is None:
        return f"{own} (CUDA {torch.version.cuda}); FlashInfer is not installed"
    return f"FlashInfer {getattr(library, '__version__', 'unknown')} ({own})"


def _cublas_version() -> str:
    """cublasLt's own answer: 130100 is 13.1.0; the library is the one that torch has loaded."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "libcublasLt.so" in line}
    if not paths:
        return "unknown (libcublasLt is not loaded)"
    library = ctypes.CDLL(sorted(paths)[0])
    library.cublasLtGetVersion.restype = ctypes.c_size_t
    return _dotted(int(library.cublasLtGetVersion()))


def _cudnn_version() -> str:
    version: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return _dotted(version)


def _dotted(version: int | None) -> str:
    if version is None:
        return "unknown"
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"
