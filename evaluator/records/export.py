"""Our evaluations as FlashInfer traces, and our verdict back out of them, without loss.

FlashInfer has seven statuses, we have more verdicts: the trace carries FlashInfer's status and,
in the extra field `ptxboard` (and in `correctness.extra` where there is one), our verdict, the
message, the target instructions and the score as we wrote them. INCONCLUSIVE is nobody's fault
and has no status there: such a trace has no evaluation and says why in its own `ptxboard` field.
"""

from datetime import datetime
from typing import Any

from evaluator.records.evaluation import Environment, EvaluationRecord
from evaluator.records.evidence import CompilationEvidence, CorrectnessEvidence, OutputError
from evaluator.records.flashinfer import (
    Correctness,
    Evaluation,
    EvaluationStatus,
    Performance,
    Trace,
    TraceEnvironment,
)
from evaluator.records.problem import Problem
from evaluator.records.verdicts import Verdict

OURS = "ptxboard"
NS_PER_MS = 1e6
UNKNOWN_TIME = "unknown"

STATUS_OF: dict[Verdict, EvaluationStatus | None] = {
    Verdict.PASSED: EvaluationStatus.PASSED,
    Verdict.COMPILE_ERROR: EvaluationStatus.COMPILE_ERROR,
    Verdict.ENTRY_POINT_MISSING: EvaluationStatus.COMPILE_ERROR,
    Verdict.BANNED_LIBRARY: EvaluationStatus.COMPILE_ERROR,
    Verdict.SANITIZER_ERROR: EvaluationStatus.RUNTIME_ERROR,
    Verdict.RUNTIME_ERROR: EvaluationStatus.RUNTIME_ERROR,
    Verdict.TIMEOUT: EvaluationStatus.TIMEOUT,
    Verdict.OUT_OF_MEMORY: EvaluationStatus.RUNTIME_ERROR,
    Verdict.INCORRECT_SHAPE: EvaluationStatus.INCORRECT_SHAPE,
    Verdict.INCORRECT_DTYPE: EvaluationStatus.INCORRECT_DTYPE,
    Verdict.INCORRECT_NUMERICAL: EvaluationStatus.INCORRECT_NUMERICAL,
    Verdict.INPUT_MUTATED: EvaluationStatus.RUNTIME_ERROR,
    Verdict.OUT_OF_BOUNDS_WRITE: EvaluationStatus.RUNTIME_ERROR,
    Verdict.NO_KERNEL: EvaluationStatus.RUNTIME_ERROR,
    Verdict.TIMING_DISPUTED: EvaluationStatus.RUNTIME_ERROR,
    Verdict.INCONCLUSIVE: None,
}


def status_of(verdict: Verdict) -> EvaluationStatus | None:
    """FlashInfer's word for a verdict; None for INCONCLUSIVE, which blames nobody."""
    return STATUS_OF[verdict]


def verdict_of(trace: Trace) -> Verdict | None:
    """Our verdict in a trace: the one we wrote, else FlashInfer's status; None: no evaluation.

    A trace is a claim of whoever wrote it. Raises ValueError where verdict and status disagree.
    """
    holder = trace if trace.evaluation is None else trace.evaluation
    ours = (holder.model_extra or {}).get(OURS)
    status = None if trace.evaluation is None else trace.evaluation.status
    if not isinstance(ours, dict) or "verdict" not in ours:
        return None if status is None else Verdict(status.value)
    verdict = Verdict(ours["verdict"])
    if STATUS_OF[verdict] is not status:
        raise ValueError(f"verdict {verdict} goes with status {STATUS_OF[verdict]}; seen: {status}")
    return verdict


def evaluation_to_trace(
    record: EvaluationRecord, problem: Problem, *, solution: str | None = None
) -> Trace:
    """One evaluation as a FlashInfer trace.

    solution  its name in the trace set; by default the problem's name and the candidate's digest
    Raises ValueError: the record is of another problem, or PASSED without a score.
    """
    if record.problem_digest != problem.digest:
        seen, expected = record.problem_digest[:12], problem.digest[:12]
        raise ValueError(f"the record is of problem {seen}, expected {problem.name} {expected}")
    status = STATUS_OF[record.verdict]
    fields: dict[str, Any] = {
        "definition": problem.definition.name,
        "workload": problem.workload,
        "solution": solution or f"{problem.name}_{record.candidate.digest[:12]}",
        "evaluation": None if status is None else _evaluation(record, status),
    }
    if status is None:
        fields[OURS] = _ours(record)
    return Trace.model_validate(fields)


def _evaluation(record: EvaluationRecord, status: EvaluationStatus) -> Evaluation:
    fields: dict[str, Any] = {
        "status": status,
        "environment": _environment(record.environment),
        "timestamp": _timestamp(record),
        "log": _log(record),
        OURS: _ours(record),
    }
    if status in (EvaluationStatus.PASSED, EvaluationStatus.INCORRECT_NUMERICAL):
        fields["correctness"] = _correctness(record)
    if status is EvaluationStatus.PASSED:
        fields["performance"] = _performance(record)
    return Evaluation.model_validate(fields)


def _ours(record: EvaluationRecord) -> dict[str, Any]:
    kept = {"format", "verdict", "message", "stages_not_reached", "target_instructions", "score"}
    return record.model_dump(mode="json", include=kept)


def _environment(environment: Environment) -> TraceEnvironment:
    named = ("torch", "cuda_runtime", "cudnn", "cublas", "cupti", "driver", "compiler")
    libraries = {name: getattr(environment, name) for name in named}
    return TraceEnvironment(
        hardware=environment.device_name or "CPU",
        libs={name: version for name, version in libraries.items() if version is not None},
    )


def _timestamp(record: EvaluationRecord) -> str:
    ends: list[datetime] = [stage.ended_at for stage in record.stages if stage.ended_at]
    return max(ends).isoformat() if ends else UNKNOWN_TIME


def _log(record: EvaluationRecord) -> str:
    logs = [
        stage.evidence.log
        for stage in record.stages
        if isinstance(stage.evidence, CompilationEvidence) and stage.evidence.log
    ]
    return "\n".join([record.message, *logs])


def _correctness(record: EvaluationRecord) -> Correctness:
    """The largest errors over all trials and outputs; null where one of them is not finite."""
    outputs = [
        output
        for stage in record.stages
        if isinstance(stage.evidence, CorrectnessEvidence)
        for trial in stage.evidence.trials
        for output in trial.outputs
    ]
    return Correctness(
        max_relative_error=_largest([output.max_rel_error for output in outputs]),
        max_absolute_error=_largest([output.max_abs_error for output in outputs]),
        extra={OURS: {"verdict": record.verdict.value, "outputs": _worst(outputs)}},
    )


def _largest(errors: list[float | None]) -> float | None:
    finite = [error for error in errors if error is not None]
    return max(finite) if finite and len(finite) == len(errors) else None


def _worst(outputs: list[OutputError]) -> list[dict[str, Any]]:
    """For each output the trial with the most bad elements."""
    worst: dict[str, OutputError] = {}
    for output in outputs:
        known = worst.get(output.name)
        if known is None or output.bad_count > known.bad_count:
            worst[output.name] = output
    return [output.model_dump(mode="json") for output in worst.values()]


def _performance(record: EvaluationRecord) -> Performance:
    score = record.score
    if score is None:
        raise ValueError("a PASSED evaluation needs a score to be a trace; seen: none")
    return Performance(
        latency_ms=score.latency_ns / NS_PER_MS,
        reference_latency_ms=score.baseline_latency_ns / NS_PER_MS,
        speedup_factor=score.speedup,
    )
