"""Sanitizer stage: memcheck over one call in a process of its own, on exact-size buffers.

In        the compiled library; finite made-up inputs, none of the judge's
Out       SanitizerEvidence: exit code, summary, first fault with kernel and source line
Verdicts  PASSED; SANITIZER_ERROR: memcheck counted errors; RUNTIME_ERROR: the process died or the
          device reported an error without memcheck naming one; TIMEOUT; OUT_OF_MEMORY
Raises    EvaluatorFault: no tool, no summary, or a summary that the exit code contradicts
Source    compute-sanitizer memcheck, `--error-exitcode`; API errors are not reported, since
          honest start-up code probes the driver for symbols that it may lack

Fails closed: both exit code and summary must say that there were none. What gets past: reads of
uninitialised memory, races and shared-memory hazards (other tools of the sanitizer), accesses
inside another valid allocation, and code that behaves only under the sanitizer.
"""

from evaluator.bench import Bench
from evaluator.device import device_of
from evaluator.host.solo import CANDIDATE_FAILED, DEVICE_FAILED, LOAD_FAILED
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import Ending, SanitizerEvidence
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.work import Work

ERROR_EXIT = 99
VERDICT_OF_ENDING = {
    Ending.TIMED_OUT: Verdict.TIMEOUT,
    Ending.OUT_OF_MEMORY: Verdict.OUT_OF_MEMORY,
    Ending.CRASHED: Verdict.RUNTIME_ERROR,
    Ending.DEVICE_ERROR: Verdict.RUNTIME_ERROR,
}
FAILURES_OF_SOLO = (LOAD_FAILED, DEVICE_FAILED, CANDIDATE_FAILED)

Result = StageResult[SanitizerEvidence]


def run(work: Work, bench: Bench) -> Result:
    device = device_of(bench)
    result = judge(device.sanitize(work))
    if not result.passed:
        device.examine()
    return result


def judge(evidence: SanitizerEvidence) -> Result:
    """Raises EvaluatorFault where the tool's words and its exit code do not make a verdict."""
    verdict, message = _decide(evidence)
    return StageResult[SanitizerEvidence](
        stage=Stage.SANITIZER, verdict=verdict, message=message, evidence=evidence
    )


def _decide(evidence: SanitizerEvidence) -> tuple[Verdict, str]:
    process, count = evidence.process, evidence.error_count
    if process.ending is Ending.TIMED_OUT:
        return Verdict.TIMEOUT, f"under memcheck: {process.detail}"
    if count:
        return Verdict.SANITIZER_ERROR, _fault_text(evidence)
    if process.ending is not Ending.FINISHED:
        return VERDICT_OF_ENDING[process.ending], f"under memcheck: {process.detail}"
    code = process.exit_code
    if code in FAILURES_OF_SOLO:
        return Verdict.RUNTIME_ERROR, f"under memcheck: {_last_line(process.output_tail)}"
    if count is None or not evidence.completed:
        tail = _last_line(evidence.report or process.output_tail)
        raise EvaluatorFault(
            f"sanitizer: no summary in memcheck's report (exit code {code}): {tail!r}; "
            "check that compute-sanitizer runs on this machine"
        )
    if code == ERROR_EXIT:
        raise EvaluatorFault("sanitizer: memcheck's exit code says errors, its summary says none")
    if code != 0:
        text = f"the process ended by itself with exit code {code}"
        return Verdict.RUNTIME_ERROR, f"under memcheck: {text}"
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
