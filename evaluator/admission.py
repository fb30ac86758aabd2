"""Admission: a problem is accepted only where wrong answers fail on it.

In        a Problem; a device
Out       AdmissionReport: per wrong answer and output, how far from passing it is
Verdicts  admitted: the reference holds no NaN and agrees with itself, and every wrong
          answer fails; else refused, with a reason per finding
Raises    EvaluatorFault: the reference cannot be run as its definition says
Source    FlashInfer's default tolerance lets all-zeros pass where true outputs are tiny
          (ScalingIntelligence/KernelBench#165)

Each wrong answer replaces one output and leaves the others right, so an output that nothing can
fail cannot hide behind another. Only `fp8_inputs` is taken as a whole, since rounding the inputs
changes all outputs at once; where fewer than one element in a thousand gives it away, the problem
is admitted with a caveat. What is not covered: a wrong answer that is right on these inputs and
wrong on others (fresh secret seeds answer for that), and rounding finer than e4m3.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import torch

from evaluator.comparison import compare
from evaluator.problems.tensors import Tensors, make_inputs, reference
from evaluator.records.evidence import OutputError
from evaluator.records.problem import Problem, Tolerance

SEED, STALE_SEED = 20_260_817, 20_260_818
SHUFFLE_BY = 7_919
FP8 = torch.float8_e4m3fn


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantOutcome:
    """One wrong answer in one output; `bad_fraction` 0.0 means that it passes."""

    mutant: str
    output: str
    bad_fraction: float
    max_abs_error: float | None

    @property
    def passes(self) -> bool:
        return self.bad_fraction == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionReport:
    """`reasons` refuse a problem; `caveats` go with it. Both are whole sentences."""

    problem: str
    problem_digest: str
    device: str
    torch_version: str
    tolerance_atol: float
    tolerance_rtol: float
    outcomes: tuple[MutantOutcome, ...]
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]

    @property
    def admitted(self) -> bool:
        return not self.reasons

    def to_json(self) -> str:
        return json.dumps({"admitted": self.admitted, **asdict(self)}, allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What wrong answers are made from."""

    problem: Problem
    inputs: Tensors
    expected: Tensors


def admit(problem: Problem, device: torch.device | str) -> AdmissionReport:
    inputs = make_inputs(problem, SEED, device)
    trial = _Trial(problem=problem, inputs=inputs, expected=_run(problem, inputs))
    outcomes = tuple(
        outcome for name, mutant in MUTANTS.items() for outcome in _outcomes(trial, name, mutant)
    )
    return AdmissionReport(
        problem=problem.name,
        problem_digest=problem.digest,
        device=_device_name(device),
        torch_version=str(torch.__version__),
        tolerance_atol=problem.tolerance.atol,
        tolerance_rtol=problem.tolerance.rtol,
        outcomes=outcomes,
        reasons=_reference_faults(trial) + _passing(problem, outcomes),
        caveats=_thin_margins(problem, outcomes),
    )


Mutant = Callable[[_Trial, str], torch.Tensor | None]


def zeros(trial: _Trial, output: str) -> torch.Tensor:
    return torch.zeros_like(trial.expected[output])


def mean_constant(trial: _Trial, output: str) -> torch.Tensor:
    expected = trial.expected[output]
    return torch.full_like(expected, expected.mean(dtype=torch.float64).item())


def first_input(trial: _Trial, output: str) -> torch.Tensor | None:
    """The first input as the answer; None where its shape is another."""
    given = next(iter(trial.inputs.values()))
    expected = trial.expected[output]
    return given.to(expected.dtype) if given.shape == expected.shape else None


def shuffled(trial: _Trial, output: str) -> torch.Tensor:
    """The right values in the wrong places: all of them moved on, round the end."""
    expected = trial.expected[output]
    return expected.reshape(-1).roll(SHUFFLE_BY).reshape(expected.shape)


def stale_seed(trial: _Trial, output: str) -> torch.Tensor:
    """The right answer to the inputs of another call."""
    device = trial.expected[output].device
    return _run(trial.problem, make_inputs(trial.problem, STALE_SEED, device))[output]


def fp8_inputs(trial: _Trial, output: str) -> torch.Tensor:
    """The reference on inputs rounded to 8 bits (e4m3)."""
    rounded = {
        name: tensor.to(FP8).to(tensor.dtype) if tensor.is_floating_point() else tensor
        for name, tensor in trial.inputs.items()
    }
    return _run(trial.problem, rounded)[output]


MUTANTS: dict[str, Mutant] = {
    mutant.__name__: mutant
    for mutant in (zeros, mean_constant, first_input, shuffled, stale_seed, fp8_inputs)
}
TAKEN_AS_A_WHOLE = fp8_inputs.__name__
THIN = 1e-3
MEANINGS = {
    "zeros": "all zeros pass",
    "mean_constant": "the mean of the reference everywhere passes",
    "first_input": "a copy of the first input passes",
    "shuffled": "the right values in the wrong places pass",
    "stale_seed": "the answer to another call's inputs passes",
    "fp8_inputs": "inputs rounded to 8 bits pass",
}


def _outcomes(trial: _Trial, name: str, mutant: Mutant) -> list[MutantOutcome]:
    outcomes = []
    for output in trial.expected:
        answer = mutant(trial, output)
        if answer is None:
            continue
        seen = _compare(output, answer, trial.expected, trial.problem.tolerance)
        outcome = MutantOutcome(
            mutant=name,
            output=output,
            bad_fraction=seen.bad_count / max(1, seen.element_count),
            max_abs_error=seen.max_abs_error,
        )
        outcomes.append(outcome)
    return outcomes


def _compare(
    output: str, answer: torch.Tensor, expected: Mapping[str, torch.Tensor], tolerance: Tolerance
) -> OutputError:
    return compare(output, answer, expected[output], tolerance)


def _run(problem: Problem, inputs: Tensors) -> Tensors:
    return reference(problem)(**inputs)


def _reference_faults(trial: _Trial) -> tuple[str, ...]:
    """NaN anywhere, or a second run on the same inputs that does not pass."""
    again = _run(trial.problem, trial.inputs)
    faults = []
    for output in trial.expected:
        seen = _compare(output, again[output], trial.expected, trial.problem.tolerance)
        if seen.reference_nan_count:
            faults.append(
                f"reference output {output!r} holds {seen.reference_nan_count} NaN among "
                f"{seen.element_count} elements; a reference must hold none"
            )
        elif seen.bad_count:
            faults.append(
                f"reference output {output!r} differs from itself in {seen.bad_count} of "
                f"{seen.element_count} elements when run twice on equal inputs"
            )
    return tuple(faults)


def _passing(problem: Problem, outcomes: tuple[MutantOutcome, ...]) -> tuple[str, ...]:
    rounded = [outcome for outcome in outcomes if outcome.mutant == TAKEN_AS_A_WHOLE]
    seen_in_one = not all(outcome.passes for outcome in rounded)
    return tuple(
        _sentence(problem, outcome)
        for outcome in outcomes
        if outcome.passes and not (outcome in rounded and seen_in_one)
    )


def _thin_margins(problem: Problem, outcomes: tuple[MutantOutcome, ...]) -> tuple[str, ...]:
    rounded = [outcome for outcome in outcomes if outcome.mutant == TAKEN_AS_A_WHOLE]
    clearest = max(rounded, key=lambda outcome: outcome.bad_fraction)
    if clearest.passes or clearest.bad_fraction >= THIN:
        return ()
    share = f"{clearest.bad_fraction:.2g} of the elements of output {clearest.output!r}"
    return (f"inputs rounded to 8 bits are given away by only {share}",)


def _sentence(problem: Problem, outcome: MutantOutcome) -> str:
    tolerance = problem.tolerance
    return (
        f"output {outcome.output!r}: {MEANINGS[outcome.mutant]} at atol {tolerance.atol:g}, rtol "
        f"{tolerance.rtol:g} (largest error {outcome.max_abs_error:.3g})"
    )


def _device_name(device: torch.device | str) -> str:
    if torch.device(device).type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return "cpu"
