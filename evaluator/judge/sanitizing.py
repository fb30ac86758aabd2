"""The measuring half of the sanitizer stage: memcheck over one call on exact-size buffers.

The name of the report and the exit code that means errors are other ones each time.
"""

import secrets

from evaluator.judge.sanitizer_report import first_fault, summary_count
from evaluator.judge.solo import run_watched
from evaluator.records.evidence import SanitizerEvidence
from evaluator.sandbox import Sandbox
from evaluator.toolchain import Toolchain
from evaluator.work import Work

SANITIZER_SECONDS = 45.0
ERROR_EXITS = range(64, 124)
KEPT_CHARACTERS = 64 << 10


def options(report_name: str, error_exit: int) -> tuple[str, ...]:
    return (
        "--tool",
        "memcheck",
        "--error-exitcode",
        str(error_exit),
        "--report-api-errors",
        "no",
        "--print-limit",
        "20",
        "--log-file",
        report_name,
    )


def sanitize(
    work: Work, sandbox: Sandbox, toolchain: Toolchain, *, seconds: float = SANITIZER_SECONDS
) -> SanitizerEvidence:
    """Raises EvaluatorFault without the tool."""
    tool = toolchain.need("compute-sanitizer")
    name, error_exit = f"{secrets.token_hex(8)}.txt", secrets.choice(ERROR_EXITS)
    watched = run_watched(
        work,
        sandbox,
        tool,
        options(name, error_exit),
        report_name=name,
        timeout_seconds=seconds,
    )
    text = (watched.report or b"").decode("utf-8", errors="replace")
    count = summary_count(text)
    return SanitizerEvidence(
        tool="memcheck",
        tool_version=tool.version,
        process=watched.process,
        completed=count is not None,
        error_count=count,
        error_exit=error_exit,
        refusal=watched.refusal,
        first_fault=first_fault(text),
        report=text[:KEPT_CHARACTERS],
        report_truncated=len(text) > KEPT_CHARACTERS,
    )
