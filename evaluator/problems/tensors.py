"""A problem's tensors: inputs and the reference. Only the judge imports this: it needs torch.

In      a Problem; a seed; a device
Out     tensors by name, in definition order, contiguous, of the workload's shapes
Raises  EvaluatorFault where a reference returns something else than its definition says
Source  inputs N(0, 1) from torch.Generator, drawn in the tensor's own dtype in definition order,
        then offsets and page numbers, valid ones, as the workload tells (see `indices`)

`make_inputs` and `fill_inputs` give equal contents for equal seeds on one kind of device.
`refresh_inputs` is what runs between timed calls: as random as `fill_inputs` where inputs are
independent; for a backward pass, whose O and L must belong to its Q, K and V, it moves whole
(batch, head) slices about and flips signs, which is exact, instead of running a forward pass.
"""

import ast
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

from evaluator.problems.catalogue import forward_reference
from evaluator.problems.indices import bounds_by_input, lengths_by_input
from evaluator.problems.prototypes import axis_sizes, parameters
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
    apart = (*derived, *_index_names(problem))
    for name in problem.definition.inputs:
        if name not in apart:
            _draw(problem, name, destinations[name], generator)
    _draw_indices(problem, destinations, generator)
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


def index_contents(problem: Problem, seed: int) -> dict[str, bytes]:
    """Offsets and page numbers as raw bytes: what a process without a judge must be given."""
    found = {
        item.name: torch.empty(item.shape, dtype=_torch_type(item.dtype))
        for item in parameters(problem)
        if item.name in _index_names(problem)
    }
    if found:
        _draw_indices(problem, found, torch.Generator().manual_seed(seed))
    return {name: tensor.numpy().tobytes() for name, tensor in found.items()}


def reference(problem: Problem) -> Operator:
    """The definition's reference; takes inputs by name and returns outputs by name."""
    return _operator(problem.definition, problem.definition.reference)


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


def _index_names(problem: Problem) -> tuple[str, ...]:
    return (*lengths_by_input(problem), *bounds_by_input(problem, axis_sizes(problem)))


def _draw_indices(
    problem: Problem, destinations: Mapping[str, torch.Tensor], generator: torch.Generator
) -> None:
    """In place, on the tensors' device; sequences come in one order for all inputs."""
    order: torch.Tensor | None = None
    for name, lengths in lengths_by_input(problem).items():
        destination = destinations[name]
        if order is None:
            order = _permutation(len(lengths), destination, generator)
        told = torch.tensor(lengths, dtype=destination.dtype, device=destination.device)
        destination[0] = 0
        torch.cumsum(told[order], dim=0, out=destination[1:])
    for name, bound in bounds_by_input(problem, axis_sizes(problem)).items():
        destination = destinations[name]
        numbers = _permutation(bound, destination, generator)[: destination.numel()]
        destination.copy_(numbers.view(destination.shape))


def _permutation(count: int, beside: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randperm(count, generator=generator, device=beside.device)


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
