"""The measuring half of the sanitizer stage: memcheck over one call on exact-size buffers."""

from evaluator.judge.sanitizer_report import first_fault, summary_count
from evaluator.judge.solo import run_watched
from evaluator.records.evidence import SanitizerEvidence
from evaluator.sandbox import Sandbox
from evaluator.toolchain import Toolchain
from evaluator.work import Work

SANITIZER_SECONDS = 45.0
ERROR_EXIT = 99
REPORT = "memcheck.txt"
KEPT_CHARACTERS = 64 << 10
OPTIONS = (
    "--tool",
    "memcheck",
    "--error-exitcode",
    str(ERROR_EXIT),
    "--report-api-errors",
    "no",
    "--print-limit",
    "20",
    "--log-file",
    REPORT,
)


def sanitize(
    work: Work, sandbox: Sandbox, toolchain: Toolchain, *, seconds: float = SANITIZER_SECONDS
) -> SanitizerEvidence:
    """Raises EvaluatorFault without the tool."""
    tool = toolchain.need("compute-sanitizer")
    watched = run_watched(work, sandbox, tool, OPTIONS, report_name=REPORT, timeout_seconds=seconds)
    text = (watched.report or b"").decode("utf-8", errors="replace")
    count = summary_count(text)
    return SanitizerEvidence(
        tool="memcheck",
        tool_version=tool.version,
        process=watched.process,
        completed=count is not None,
        error_count=count,
        first_fault=first_fault(text),
        report=text[:KEPT_CHARACTERS],
        report_truncated=len(text) > KEPT_CHARACTERS,
    )
