"""Admission: a problem is accepted only where wrong answers fail on it.

In        a Problem; a device
Out       AdmissionReport: per wrong answer and output, how many elements give it away and by how
          much
Verdicts  admitted: the reference holds no NaN and agrees with itself, and every wrong
          answer fails; else refused, with a reason per finding
Raises    EvaluatorFault: the reference cannot be run as its definition says
Source    FlashInfer's default tolerance lets all-zeros pass where true outputs are tiny
          (ScalingIntelligence/KernelBench#165)

The wrong answers are those of `mutants`. Where fewer than one element in a thousand gives one
away, the problem is admitted with a caveat. What is not covered: a wrong answer that is right on
these inputs and wrong on others (fresh secret seeds answer for that), and rounding finer than
e4m3.
"""

import torch

from evaluator.admission.mutants import (
    MEANINGS,
    REFUSING,
    TOLD_ONLY,
    WHY_NOT,
    Mutant,
    Trial,
    missing_corner,
    run,
)
from evaluator.comparison import compare
from evaluator.records.admission import ONE_IS_ENOUGH, AdmissionReport, MutantOutcome
from evaluator.records.problem import Problem
from evaluator.records.verdicts import EvaluatorFault

MUTANTS: dict[str, Mutant] = {mutant.__name__: mutant for mutant in (*REFUSING, *TOLD_ONLY)}
TOLD = {mutant.__name__ for mutant in TOLD_ONLY}
THIN = 1e-3
THIN_BY_NATURE = missing_corner.__name__


def admit(problem: Problem, device: torch.device | str) -> AdmissionReport:
    try:
        trial = Trial.of(problem, device)
    except NotImplementedError as error:
        raise EvaluatorFault(
            f"{problem.name}: its reference ({problem.baseline.name}) does not run on "
            f"{_device_name(device)}; admit it on a GPU, or admit its small twin here"
        ) from error
    outcomes = tuple(
        outcome for name, mutant in MUTANTS.items() for outcome in _outcomes(trial, name, mutant)
    )
    tried = {outcome.mutant for outcome in outcomes}
    return AdmissionReport(
        problem=problem.name,
        problem_digest=problem.digest,
        device=_device_name(device),
        torch_version=str(torch.__version__),
        tolerance_atol=problem.tolerance.atol,
        tolerance_rtol=problem.tolerance.rtol,
        outcomes=outcomes,
        reasons=_reference_faults(trial) + _passing(problem, outcomes, told=False),
        caveats=_passing(problem, outcomes, told=True) + _thin_margins(outcomes),
        not_tried=tuple(f"{name}: {WHY_NOT[name]}" for name in MUTANTS if name not in tried),
    )


def _outcomes(trial: Trial, name: str, mutant: Mutant) -> list[MutantOutcome]:
    outcomes = []
    for output in trial.expected:
        answer = mutant(trial, output)
        if answer is not None:
            outcomes.append(_outcome(trial, name, output, answer))
    trial.made.clear()
    return outcomes


def _outcome(trial: Trial, name: str, output: str, answer: torch.Tensor) -> MutantOutcome:
    tolerance = trial.problem.tolerance
    seen = compare(output, answer, trial.expected[output], tolerance)
    needed = seen.smallest_passing_atol
    return MutantOutcome(
        mutant=name,
        output=output,
        bad_count=seen.bad_count,
        element_count=seen.element_count,
        max_abs_error=seen.max_abs_error,
        margin=None if needed is None else max(0.0, needed) / tolerance.atol,
    )


def _reference_faults(trial: Trial) -> tuple[str, ...]:
    """NaN anywhere, or a second run on the same inputs that does not pass."""
    again = run(trial.problem, trial.inputs)
    faults = []
    for output, expected in trial.expected.items():
        seen = compare(output, again[output], expected, trial.problem.tolerance)
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


def _passing(
    problem: Problem, outcomes: tuple[MutantOutcome, ...], *, told: bool
) -> tuple[str, ...]:
    """A sentence per wrong answer that passes; one that is taken whole must pass in all outputs."""
    shown = {outcome.mutant for outcome in outcomes if not outcome.passes}
    return tuple(
        _sentence(problem, outcome)
        for outcome in outcomes
        if outcome.passes
        and (outcome.mutant in TOLD) is told
        and not (outcome.mutant in ONE_IS_ENOUGH and outcome.mutant in shown)
    )


def _thin_margins(outcomes: tuple[MutantOutcome, ...]) -> tuple[str, ...]:
    """What is given away by few elements: of a whole one, in the output that shows it most."""
    groups: dict[tuple[str, str], list[MutantOutcome]] = {}
    for outcome in outcomes:
        place = "" if outcome.mutant in ONE_IS_ENOUGH else outcome.output
        groups.setdefault((outcome.mutant, place), []).append(outcome)
    clearest = [max(group, key=lambda one: one.bad_fraction) for group in groups.values()]
    return tuple(
        f"{one.mutant}: only {one.bad_count} of {one.element_count} elements of output "
        f"{one.output!r} give it away"
        for one in clearest
        if 0 < one.bad_fraction < THIN and one.mutant != THIN_BY_NATURE
    )


def _sentence(problem: Problem, outcome: MutantOutcome) -> str:
    tolerance, error = problem.tolerance, outcome.max_abs_error
    largest = "" if error is None else f" (largest error {error:.3g})"
    return (
        f"output {outcome.output!r}: {MEANINGS[outcome.mutant]} at atol {tolerance.atol:g}, rtol "
        f"{tolerance.rtol:g}{largest}"
    )


def _device_name(device: torch.device | str) -> str:
    if torch.device(device).type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return "cpu"
