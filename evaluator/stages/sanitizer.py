"""Sanitizer stage: memcheck over one call in a process of its own, on exact-size buffers.

In        the compiled library; finite made-up inputs, none of the judge's
Out       SanitizerEvidence: exit code, summary, first fault with kernel and source line
Verdicts  PASSED; SANITIZER_ERROR: memcheck counted errors, or its exit code says so, or its report
          was taken away; RUNTIME_ERROR: the process died or the device reported an error without
          memcheck naming one; TIMEOUT; OUT_OF_MEMORY
Raises    EvaluatorFault: no tool, it failed before the candidate was loaded, or it reports an
          error of its own
Source    compute-sanitizer memcheck, `--error-exitcode`; API errors are not reported, since
          honest start-up code probes the driver for symbols that it may lack

Fails closed: both exit code and summary must say that there were none, and a report that says
something else than the exit code was changed by the candidate, which runs beside the tool as the
same user. What gets past: a candidate that takes the tool itself over through /proc; reads of
uninitialised memory, races and shared-memory hazards (other tools of the sanitizer), accesses
inside another valid allocation, and code that behaves only under the sanitizer.
"""

from evaluator.bench import Bench
from evaluator.device import device_of
from evaluator.host.solo import CANDIDATE_FAILED, DEVICE_FAILED, LOAD_FAILED, LOADING
from evaluator.judge.sanitizer_report import is_internal
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import Ending, SanitizerEvidence
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.stages.correctness import VERDICT_OF_ENDING
from evaluator.work import Work

FAILURES_OF_SOLO = (LOAD_FAILED, DEVICE_FAILED, CANDIDATE_FAILED)

Result = StageResult[SanitizerEvidence]


def run(work: Work, bench: Bench) -> Result:
    device = device_of(bench)
    result = judge(device.sanitize(work))
    if not result.passed:
        device.examine()
    return result


def judge(evidence: SanitizerEvidence) -> Result:
    """Raises EvaluatorFault where nothing of the candidate's can have run, or the tool failed."""
    verdict, message = _decide(evidence)
    return StageResult[SanitizerEvidence](
        stage=Stage.SANITIZER, verdict=verdict, message=message, evidence=evidence
    )


def _decide(evidence: SanitizerEvidence) -> tuple[Verdict, str]:
    process, count, code = evidence.process, evidence.error_count, evidence.process.exit_code
    if count is None and LOADING not in process.output_tail:
        end = process.detail or f"exit code {code}"
        tail = _last_line(evidence.report or process.output_tail)
        raise EvaluatorFault(
            f"sanitizer: it ended before the candidate was loaded ({end}): {tail!r}; "
            "check that compute-sanitizer runs on this machine"
        )
    if process.ending is Ending.TIMED_OUT:
        return Verdict.TIMEOUT, f"under memcheck: {process.detail}"
    if count and is_internal(evidence.first_fault):
        assert evidence.first_fault is not None
        raise EvaluatorFault(f"sanitizer: the tool itself failed: {evidence.first_fault.kind}")
    if count:
        return Verdict.SANITIZER_ERROR, _fault_text(evidence)
    if process.ending is not Ending.FINISHED:
        return VERDICT_OF_ENDING[process.ending], f"under memcheck: {process.detail}"
    if code == evidence.error_exit:
        text = f"memcheck's exit code {code} says errors, its report does not: it was changed"
        return Verdict.SANITIZER_ERROR, text
    if code in FAILURES_OF_SOLO:
        return Verdict.RUNTIME_ERROR, f"under memcheck: {_last_line(process.output_tail)}"
    if code != 0:
        text = f"the process ended by itself with exit code {code}"
        return Verdict.RUNTIME_ERROR, f"under memcheck: {text}"
    if count is None or not evidence.completed:
        seen = evidence.refusal or "no summary is there"
        return Verdict.SANITIZER_ERROR, f"memcheck's report was taken away or changed: {seen}"
    return Verdict.PASSED, "memcheck: 0 errors"


def _fault_text(evidence: SanitizerEvidence) -> str:
    fault, count = evidence.first_fault, evidence.error_count
    plural = "error" if count == 1 else "errors"
    if fault is None:
        return f"memcheck: {count} {plural}, limit 0; see the report"
    where = f" in {fault.kernel}" if fault.kernel else ""
    line = f" at {fault.source_file}:{fault.source_line}" if fault.source_file else ""
    return f"memcheck: {count} {plural}, limit 0; first: {fault.kind}{where}{line}"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"
