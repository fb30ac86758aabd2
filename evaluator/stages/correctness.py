"""Correctness stage: secret inputs, poisoned and guarded outputs, every element compared.

In        the compiled library; inputs from fresh secret seeds, references in the judge's memory
Out       CorrectnessEvidence: each output of each trial with counts, first bad index, errors
Verdicts  PASSED; RUNTIME_ERROR, TIMEOUT, OUT_OF_MEMORY: how the process failed;
          OUT_OF_BOUNDS_WRITE: a guard band changed; INPUT_MUTATED;
          INCORRECT_NUMERICAL: an element was not written, not finite where the reference is, or
          beyond the limit, or two calls on equal inputs disagree; BANNED_LIBRARY: mapped
Raises    EvaluatorFault: the reference holds NaN, or fewer trials than planned with no failure
Source    `|out - ref| <= atol + rtol * |ref|` on every element, as torch.allclose has it

What gets past: writes beyond a guard band that hit no other tensor (the sanitizer's to find),
inputs changed and put back, races that did not show in four calls.
"""

from collections.abc import Iterator

from evaluator.bench import Bench
from evaluator.device import device_of
from evaluator.judge.mappings import banned_libraries
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import (
    CorrectnessEvidence,
    CorrectnessTrial,
    Ending,
    OutputError,
    ProcessReport,
)
from evaluator.records.problem import Tolerance
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.work import Work

VERDICT_OF_ENDING = {
    Ending.TIMED_OUT: Verdict.TIMEOUT,
    Ending.OUT_OF_MEMORY: Verdict.OUT_OF_MEMORY,
    Ending.CRASHED: Verdict.RUNTIME_ERROR,
    Ending.DEVICE_ERROR: Verdict.RUNTIME_ERROR,
}
GUARD_TEXT = "64 KiB around each tensor are guarded"

Result = StageResult[CorrectnessEvidence]
Finding = tuple[Verdict, str]


def run(work: Work, bench: Bench) -> Result:
    device = device_of(bench)
    result = judge(device.check(work), allowed_libraries=work.problem.allowed_libraries)
    if not result.passed:
        device.examine()
    return result


def judge(evidence: CorrectnessEvidence, *, allowed_libraries: tuple[str, ...] = ()) -> Result:
    """The first finding in the order of the verdicts above; PASSED without one."""
    finding = next(_findings(evidence, allowed_libraries), None)
    verdict, message = finding or (Verdict.PASSED, _passed_text(evidence))
    return StageResult[CorrectnessEvidence](
        stage=Stage.CORRECTNESS, verdict=verdict, message=message, evidence=evidence
    )


def _findings(evidence: CorrectnessEvidence, allowed: tuple[str, ...]) -> Iterator[Finding]:
    if evidence.process.ending is not Ending.FINISHED:
        yield VERDICT_OF_ENDING[evidence.process.ending], process_text(evidence.process)
    _demand_whole(evidence)
    for trial in evidence.trials:
        if trial.broken_guards:
            names = ", ".join(trial.broken_guards)
            text = f"wrote outside of {names} in trial {trial.trial}; {GUARD_TEXT}"
            yield Verdict.OUT_OF_BOUNDS_WRITE, text
    for trial in evidence.trials:
        if trial.mutated_inputs:
            names = ", ".join(trial.mutated_inputs)
            yield Verdict.INPUT_MUTATED, f"input {names} changed during the call; inputs are const"
    for trial in evidence.trials:
        yield from _wrong_outputs(trial, evidence.tolerance)
    if evidence.repeat_differs:
        text = "two calls on equal inputs gave different outputs, beyond the tolerance"
        yield Verdict.INCORRECT_NUMERICAL, text
    yield from banned_finding(evidence.process, allowed)


def banned_finding(process: ProcessReport, allowed: tuple[str, ...]) -> Iterator[Finding]:
    banned = banned_libraries(process.mapped_libraries, allowed)
    if banned:
        yield Verdict.BANNED_LIBRARY, f"the process mapped {', '.join(banned)}, which is banned"


def _demand_whole(evidence: CorrectnessEvidence) -> None:
    if len(evidence.trials) != evidence.planned_trials or evidence.repeat_differs is None:
        seen, planned = len(evidence.trials), evidence.planned_trials
        raise EvaluatorFault(f"correctness: {seen} of {planned} trials though nothing failed")
    for trial in evidence.trials:
        for output in trial.outputs:
            if output.reference_nan_count:
                raise EvaluatorFault(f"correctness: the reference of {output.name} holds NaN")


def _wrong_outputs(trial: CorrectnessTrial, tolerance: Tolerance) -> Iterator[Finding]:
    """Written everywhere first, then finite, then near: the first that fails names the fault."""
    for output in trial.outputs:
        if output.unwritten_count:
            yield Verdict.INCORRECT_NUMERICAL, _unwritten_text(output)
    for output in trial.outputs:
        if output.bad_count:
            yield Verdict.INCORRECT_NUMERICAL, wrong_text(output, tolerance)


def _unwritten_text(output: OutputError) -> str:
    count, total = output.unwritten_count, output.element_count
    text = f"output {output.name}: {count} of {total} elements never written"
    if count < total and output.bad_count == count:
        text += f", first at {output.first_bad_index}"
    if count == total:
        text += "; check the launch for errors (cudaGetLastError): perhaps no kernel ran"
    return text


def wrong_text(output: OutputError, tolerance: Tolerance) -> str:
    """Which output, how many, where first, what was there, and the limit."""
    limit = f"|out-ref| <= {tolerance.atol:g} + {tolerance.rtol:g}*|ref|"
    seen, wanted = _number(output.first_bad_actual), _number(output.first_bad_expected)
    text = (
        f"output {output.name}: {output.bad_count} of {output.element_count} elements wrong, "
        f"first at {output.first_bad_index}, expected {wanted}, got {seen}; limit {limit}"
    )
    if output.nonfinite_count:
        text += f"; {output.nonfinite_count} are NaN or infinite"
    if output.nonfinite_count == output.element_count:
        text += " (outputs hold NaN before the call: do not add to what is there)"
    if output.constant_ratio is not None:
        text += f"; constant ratio {output.constant_ratio:.4f} to the reference"
    return text


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


def process_text(process: ProcessReport) -> str:
    """How the process ended, with the last line that it printed."""
    lines = [line for line in process.output_tail.splitlines() if line.strip()]
    return process.detail + (f"; last output: {lines[-1][:300]}" if lines else "")


def _passed_text(evidence: CorrectnessEvidence) -> str:
    outputs = [output for trial in evidence.trials for output in trial.outputs]
    worst = max((output.max_abs_error or 0.0 for output in outputs), default=0.0)
    return f"{len(evidence.trials)} trials correct, largest error {worst:.3g}"
