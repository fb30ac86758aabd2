"""A problem's tensors: inputs, references, baseline. Only the judge imports this: it needs torch.

In      a Problem; a seed; a device
Out     tensors by name, in definition order, contiguous, of the workload's shapes
Raises  EvaluatorFault where a reference returns something else than its definition says
Source  inputs N(0, 1) from torch.Generator, drawn in the tensor's own dtype in definition order;
        log-sum-exp in natural logarithm

`make_inputs` and `fill_inputs` give equal contents for equal seeds on one kind of device.
`refresh_inputs` is what runs between timed calls: as random as `fill_inputs` where inputs are
independent; for a backward pass, whose O and L must belong to its Q, K and V, it moves whole
(batch, head) slices about and flips signs, which is exact, instead of running a forward pass.
"""

import ast
import ctypes
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import torch

from evaluator.problems.catalogue import forward_reference
from evaluator.problems.prototypes import parameters
from evaluator.records.flashinfer import Definition, DType, RandomInput, ScalarInput
from evaluator.records.problem import Family, Problem
from evaluator.records.verdicts import EvaluatorFault

Tensors = dict[str, torch.Tensor]
Operator = Callable[..., Tensors]

TORCH_TYPES = {
    DType.FLOAT32: torch.float32,
    DType.FLOAT16: torch.float16,
    DType.BFLOAT16: torch.bfloat16,
    DType.FLOAT8_E4M3FN: torch.float8_e4m3fn,
    DType.FLOAT8_E5M2: torch.float8_e5m2,
    DType.INT64: torch.int64,
    DType.INT32: torch.int32,
    DType.INT16: torch.int16,
    DType.INT8: torch.int8,
    DType.BOOL: torch.bool,
}
NORMAL_TYPES = (torch.float32, torch.float16, torch.bfloat16)
SAVED_BY_FORWARD = ("O", "L")
MAX_SCORES = 1 << 24


def empty_inputs(problem: Problem, device: torch.device | str) -> Tensors:
    """Uninitialised tensors for every input."""
    return _empty(problem, device, outputs=False)


def empty_outputs(problem: Problem, device: torch.device | str) -> Tensors:
    """Uninitialised tensors for every output."""
    return _empty(problem, device, outputs=True)


def make_inputs(problem: Problem, seed: int, device: torch.device | str) -> Tensors:
    inputs = empty_inputs(problem, device)
    fill_inputs(problem, seed, inputs)
    return inputs


def fill_inputs(problem: Problem, seed: int, destinations: Mapping[str, torch.Tensor]) -> None:
    """Write the inputs of `seed` in place; what was there before has no influence."""
    generator = _generator(seed, destinations)
    derived = SAVED_BY_FORWARD if problem.family is Family.MHA_BACKWARD else ()
    for name in problem.definition.inputs:
        if name not in derived:
            _draw(problem, name, destinations[name], generator)
    if problem.family is Family.MHA_BACKWARD:
        _save_forward(problem, destinations)


def refresh_inputs(problem: Problem, seed: int, destinations: Mapping[str, torch.Tensor]) -> None:
    """New valid contents, cheaply; `destinations` must hold valid inputs already.

    Backward: dO is drawn anew; the B * H slices of Q, K, V, O and L are permuted alike; then each
    slice and column of Q and K changes sign or not, both alike, so that Q K^T stays, and
    likewise V and O. Nothing is rounded, so O and L go on belonging to Q, K and V to the bit.
    What comes out depends on what was there: for a seed alone, use `fill_inputs`.
    """
    if problem.family is not Family.MHA_BACKWARD:
        fill_inputs(problem, seed, destinations)
        return
    generator = _generator(seed, destinations)
    _draw(problem, "dO", destinations["dO"], generator)
    batch, heads, _, columns = destinations["Q"].shape
    order = torch.randperm(batch * heads, generator=generator, device=generator.device)
    flips = {pair: _signs(batch * heads, columns, generator) for pair in (("Q", "K"), ("V", "O"))}
    for name in ("Q", "K", "V", "O", "L"):
        slices = destinations[name].view(batch * heads, -1)
        slices.copy_(slices[order])
    for pair, signs in flips.items():
        for name in pair:
            destinations[name].view(batch * heads, -1, columns).mul_(signs)


def reference(problem: Problem) -> Operator:
    """The definition's reference; takes inputs by name and returns outputs by name."""
    return _operator(problem.definition, problem.definition.reference)


def baseline(problem: Problem) -> Operator:
    """The tuned library's call that a speedup is measured against; called like `reference`.

    Every problem's reference is that call: cuBLAS and cuDNN for the full ones, torch for twins.
    """
    return reference(problem)


def baseline_version(problem: Problem, device: torch.device | str) -> str:
    """Name and version of what really computes the baseline on `device`, with torch's own."""
    own = f"torch {torch.__version__}"
    if torch.device(device).type != "cuda":
        return f"{own} (CPU)"
    if problem.family is Family.GEMM:
        return f"cuBLAS {_cublas_version()} ({own})"
    if problem.baseline.name == "cuDNN":
        return f"cuDNN {_cudnn_version()} ({own})"
    return f"{own} (CUDA {torch.version.cuda})"


def fp32_reference(problem: Problem, inputs: Mapping[str, torch.Tensor]) -> Tensors:
    """The outputs in fp32 from the inputs cast to fp32, before any rounding to their dtypes.

    Works head by head and in blocks of MAX_SCORES scores: beside the fp32 outputs it holds less
    than 1 GiB. TF32 is off while it runs.
    """
    compute = {
        Family.GEMM: _gemm_fp32,
        Family.MHA_FORWARD: _forward_fp32,
        Family.MHA_BACKWARD: _backward_fp32,
    }.get(problem.family, _other_fp32)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.no_grad():
            return compute(problem, inputs)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def _empty(problem: Problem, device: torch.device | str, *, outputs: bool) -> Tensors:
    return {
        item.name: torch.empty(item.shape, dtype=_torch_type(item.dtype), device=device)
        for item in parameters(problem)
        if item.is_output is outputs
    }


def _torch_type(dtype: DType) -> torch.dtype:
    if dtype not in TORCH_TYPES:
        raise EvaluatorFault(f"dtype {dtype.value!r} has no torch tensors here yet")
    return TORCH_TYPES[dtype]


def _generator(seed: int, destinations: Mapping[str, torch.Tensor]) -> torch.Generator:
    device = next(iter(destinations.values())).device
    return torch.Generator(device=device).manual_seed(seed)


def _draw(
    problem: Problem, name: str, destination: torch.Tensor, generator: torch.Generator
) -> None:
    source = problem.workload.inputs.get(name, RandomInput(type="random"))
    if isinstance(source, ScalarInput):
        destination.fill_(source.value)
    elif not isinstance(source, RandomInput):
        raise EvaluatorFault(f"input {name!r}: kind {source.type!r} is not supported yet")
    elif destination.dtype in NORMAL_TYPES:
        destination.normal_(generator=generator)
    elif destination.dtype == torch.bool:
        destination.copy_(_like(destination, torch.float32).uniform_(generator=generator) < 0.5)
    elif destination.dtype.is_floating_point:
        wide = _like(destination, torch.float32).normal_(generator=generator)
        destination.copy_(wide.clamp_(-2, 2))
    else:
        bound = 128 if destination.dtype == torch.int8 else 1024
        destination.random_(-bound, bound, generator=generator)


def _like(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=dtype, device=tensor.device)


def _signs(slices: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    bits = torch.randint(0, 2, (slices, 1, columns), generator=generator, device=generator.device)
    return bits.mul_(2).sub_(1).to(torch.bfloat16)


def _save_forward(problem: Problem, destinations: Mapping[str, torch.Tensor]) -> None:
    text = forward_reference(causal=problem.causal, plain=problem.development)
    with torch.no_grad():
        output, log_sum_exp = _compiled(text)(*(destinations[name] for name in ("Q", "K", "V")))
    destinations["O"].copy_(output)
    destinations["L"].copy_(log_sum_exp)


@cache
def _compiled(text: str) -> Callable[..., Any]:
    """`run` of a reference text. It is ours or an operator's, never a candidate's."""
    namespace: dict[str, Any] = {"__name__": "reference"}
    exec(compile(ast.parse(text), "<reference>", "exec"), namespace)  # noqa: S102
    run: Callable[..., Any] = namespace["run"]
    return run


def _operator(definition: Definition, text: str) -> Operator:
    run = _compiled(text)

    def call(**inputs: torch.Tensor) -> Tensors:
        with torch.no_grad():
            returned = run(*(inputs[name] for name in definition.inputs))
        values = returned if isinstance(returned, tuple) else (returned,)
        if len(values) != len(definition.outputs):
            seen, wanted = len(values), len(definition.outputs)
            text = f"reference of {definition.name} returned {seen} values, expected {wanted}"
            raise EvaluatorFault(text)
        return dict(zip(definition.outputs, values, strict=True))

    return call


def _gemm_fp32(problem: Problem, inputs: Mapping[str, torch.Tensor]) -> Tensors:
    left, right = inputs["A"], inputs["B"].float()
    out = torch.empty(left.shape[0], right.shape[0], dtype=torch.float32, device=left.device)
    for rows in _blocks(left.shape[0], left.shape[1]):
        torch.matmul(left[rows].float(), right.T, out=out[rows])
    return {"C": out}


def _forward_fp32(problem: Problem, inputs: Mapping[str, torch.Tensor]) -> Tensors:
    out = {name: torch.empty_like(inputs["Q"], dtype=torch.float32) for name in ("O",)}
    out["LSE"] = torch.empty(inputs["Q"].shape[:3], dtype=torch.float32, device=out["O"].device)
    for b, h in _heads(inputs["Q"]):
        q, k, v = (inputs[name][b, h].float() for name in ("Q", "K", "V"))
        for rows in _blocks(q.shape[0], k.shape[0]):
            scores = _scores(q, k, rows, problem.causal)
            out["LSE"][b, h, rows] = torch.logsumexp(scores, dim=-1)
            out["O"][b, h, rows] = torch.softmax(scores, dim=-1) @ v
    return out


def _backward_fp32(problem: Problem, inputs: Mapping[str, torch.Tensor]) -> Tensors:
    out = {name: torch.zeros_like(inputs["Q"], dtype=torch.float32) for name in ("dQ", "dK", "dV")}
    for b, h in _heads(inputs["Q"]):
        q, k, v, o, do = (inputs[name][b, h].float() for name in ("Q", "K", "V", "O", "dO"))
        for rows in _blocks(q.shape[0], k.shape[0]):
            scores = _scores(q, k, rows, problem.causal)
            p = scores.sub_(inputs["L"][b, h, rows].unsqueeze(-1)).exp_()
            out["dV"][b, h] += p.T @ do[rows]
            row_sums = (do[rows] * o[rows]).sum(dim=-1, keepdim=True)
            ds = p.mul_((do[rows] @ v.T).sub_(row_sums)).mul_(q.shape[1] ** -0.5)
            out["dQ"][b, h, rows] = ds @ k
            out["dK"][b, h] += ds.T @ q[rows]
    return out


def _other_fp32(problem: Problem, inputs: Mapping[str, torch.Tensor]) -> Tensors:
    floats = {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in inputs.items()
    }
    return {name: tensor.float() for name, tensor in reference(problem)(**floats).items()}


def _heads(tensor: torch.Tensor) -> Iterator[tuple[int, int]]:
    for b in range(tensor.shape[0]):
        for h in range(tensor.shape[1]):
            yield b, h


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, MAX_SCORES // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _scores(q: torch.Tensor, k: torch.Tensor, rows: slice, causal: bool) -> torch.Tensor:
    scores = (q[rows] @ k.T).mul_(q.shape[1] ** -0.5)
    if causal:
        keys = torch.arange(k.shape[0], device=k.device)
        queries = torch.arange(rows.start, rows.stop, device=k.device).unsqueeze(-1)
        scores.masked_fill_(keys > queries, float("-inf"))
    return scores


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
