"""Wrong answers, each as an author would come to it; all must fail on a problem.

In      a Trial: the problem, inputs, what the reference made of them
Out     one wrong tensor in place of an output, or None where the wrong answer does not exist
Raises  EvaluatorFault where the reference cannot be run

Each stands in for one output while the others stay right, so that an output that nothing can fail
cannot hide behind another. Only those of ONE_IS_ENOUGH come from one slip that changes all outputs
at once. `TOLD_ONLY` ones refuse nothing: that they pass is a property of the paper's tolerance, and
is said as a caveat.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from evaluator.problems.exact import Slip, fp32_reference, has_slips
from evaluator.problems.tensors import Tensors, make_inputs, reference
from evaluator.records.problem import Family, Problem

SEED, STALE_SEED = 20_260_817, 20_260_818
SHUFFLE_BY = 7_919
TAIL_ROWS, TAIL_ELEMENTS = 128, 2_048
TAIL_KEYS = 64
FP8 = torch.float8_e4m3fn


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What wrong answers are made from; `made` keeps what serves several outputs."""

    problem: Problem
    inputs: Tensors
    expected: Tensors
    made: dict[str, Tensors] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, device: torch.device | str) -> "Trial":
        inputs = make_inputs(problem, SEED, device)
        return cls(problem=problem, inputs=inputs, expected=run(problem, inputs))

    @property
    def device(self) -> torch.device:
        return next(iter(self.expected.values())).device

    def once(self, name: str, make: Callable[[], Tensors]) -> Tensors:
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]


Mutant = Callable[[Trial, str], torch.Tensor | None]


def run(problem: Problem, inputs: Tensors) -> Tensors:
    return reference(problem)(**inputs)


def zeros(trial: Trial, output: str) -> torch.Tensor:
    return torch.zeros_like(trial.expected[output])


def mean(trial: Trial, output: str) -> torch.Tensor:
    finite = _finite(trial.expected[output])
    return _filled(trial, output, finite.mean(dtype=torch.float64).item())


def constant(trial: Trial, output: str) -> torch.Tensor:
    """The constant whose largest error is smallest: half way between the extremes."""
    low, high = _finite(trial.expected[output]).double().aminmax()
    return _filled(trial, output, ((low + high) / 2).item())


def input_copy(trial: Trial, output: str) -> torch.Tensor | None:
    """An input's values in memory order, repeated or cut; of the same shape where there is one."""
    expected = trial.expected[output]
    floats = [given for given in trial.inputs.values() if given.is_floating_point() and given.ndim]
    if not floats:
        return None
    given = next((one for one in floats if one.shape == expected.shape), floats[0]).reshape(-1)
    repeats = -(-expected.numel() // given.numel())
    return given.repeat(repeats)[: expected.numel()].view(expected.shape).to(expected.dtype)


def shuffled(trial: Trial, output: str) -> torch.Tensor:
    """The right values in the wrong places: all of them moved on, round the end."""
    expected = trial.expected[output]
    return expected.reshape(-1).roll(SHUFFLE_BY).reshape(expected.shape)


def stale_seed(trial: Trial, output: str) -> torch.Tensor:
    """The right answer to the inputs of another call."""
    problem = trial.problem
    make = lambda: run(problem, make_inputs(problem, STALE_SEED, trial.device))  # noqa: E731
    return trial.once("stale_seed", make)[output]


def missing_tail(trial: Trial, output: str) -> torch.Tensor:
    """The last tile of rows left at zero, in every head: TAIL_ROWS, at most half of the rows."""
    answer = trial.expected[output].clone()
    axis = 2 if trial.problem.family in (Family.MHA_FORWARD, Family.MHA_BACKWARD) else 0
    extent = answer.shape[axis]
    rows = max(1, min(TAIL_ROWS, extent // 2))
    answer.narrow(axis, extent - rows, rows).zero_()
    return answer


def missing_corner(trial: Trial, output: str) -> torch.Tensor:
    """Only the end of the last head left at zero: TAIL_ELEMENTS, at most half of the output.

    Late keys of a long causal backward pass have gradients below the tolerance, so that this
    passes there.
    """
    answer = trial.expected[output].clone()
    flat = answer.view(-1)
    flat[flat.numel() - min(TAIL_ELEMENTS, flat.numel() // 2) :] = 0
    return answer


def lost_keys(trial: Trial, output: str) -> torch.Tensor | None:
    """The last tile of the sum left out: TAIL_KEYS keys of each sequence, or columns of a GEMM."""
    if not has_slips(trial.problem):
        return None
    return _slipped(trial, "lost_keys", Slip(lost_keys=TAIL_KEYS), output)


def future_key(trial: Trial, output: str) -> torch.Tensor | None:
    """A mask that is off by one: every query sees one key too many."""
    if not has_slips(trial.problem) or not trial.problem.causal:
        return None
    return _slipped(trial, "future_key", Slip(future_keys=1), output)


def fp8_inputs(trial: Trial, output: str) -> torch.Tensor:
    """The reference on inputs that all were rounded to 8 bits (e4m3)."""
    every = [name for name, given in trial.inputs.items() if _is_float_tensor(given)]
    return trial.once("fp8_inputs", lambda: _rounded(trial, every))[output]


def fp8_operands(trial: Trial, output: str) -> torch.Tensor | None:
    """The same, but only 16-bit inputs: what enters matrix products; statistics stay in fp32."""
    narrow = [
        name
        for name, given in trial.inputs.items()
        if _is_float_tensor(given) and given.element_size() == 2
    ]
    if not narrow:
        return None
    return trial.once("fp8_operands", lambda: _rounded(trial, narrow))[output]


REFUSING: tuple[Mutant, ...] = (
    zeros,
    mean,
    constant,
    input_copy,
    shuffled,
    stale_seed,
    missing_tail,
    lost_keys,
    future_key,
    fp8_inputs,
)
TOLD_ONLY: tuple[Mutant, ...] = (missing_corner, fp8_operands)
MEANINGS = {
    "zeros": "all zeros pass",
    "mean": "the mean of the reference everywhere passes",
    "constant": "one constant everywhere passes",
    "input_copy": "a copy of an input passes",
    "shuffled": "the right values in the wrong places pass",
    "stale_seed": "the answer to another call's inputs passes",
    "missing_tail": "a last tile of rows left at zero passes",
    "missing_corner": "the end of the last head left at zero passes",
    "lost_keys": f"leaving out the last {TAIL_KEYS} terms of the sum passes",
    "future_key": "a mask that lets one key too many through passes",
    "fp8_inputs": "inputs rounded to 8 bits pass",
    "fp8_operands": "16-bit inputs rounded to 8 bits pass",
}
WHY_NOT = {
    "input_copy": "no input is a tensor of floats",
    "lost_keys": "the family has no sum over keys that we know of",
    "future_key": "there is no causal mask",
    "fp8_operands": "no input has 16 bits",
}


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    finite = tensor[torch.isfinite(tensor)]
    return finite if finite.numel() else tensor.new_zeros(1)


def _filled(trial: Trial, output: str, value: float) -> torch.Tensor:
    return torch.full_like(trial.expected[output], value)


def _is_float_tensor(given: torch.Tensor) -> bool:
    """A scalar stays: it is a parameter of the problem, not its data."""
    return given.is_floating_point() and given.ndim > 0


def _rounded(trial: Trial, names: list[str]) -> Tensors:
    rounded = {name: trial.inputs[name].to(FP8).to(trial.inputs[name].dtype) for name in names}
    return run(trial.problem, {**trial.inputs, **rounded})


def _slipped(trial: Trial, name: str, slip: Slip, output: str) -> torch.Tensor:
    made = trial.once(name, lambda: fp32_reference(trial.problem, trial.inputs, slip))
    return made[output].to(trial.expected[output].dtype)
