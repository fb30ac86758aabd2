"""The policy of Triton sources: read in the sandbox, since even parsing hostile text can crash."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from pydantic import Field, ValidationError

from evaluator.bench import Bench
from evaluator.build import lay_out, plan
from evaluator.records.base import InvalidJson, Record, strict_loads
from evaluator.records.candidate import Candidate
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import Ending, PolicyEvidence, ProcessReport
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.sandbox import read_output
from evaluator.triton.confinement import run_tracer
from evaluator.triton.specification import specification
from evaluator.triton.tracer.main import FINDINGS
from evaluator.triton.tracer.rules import ENTRY, LIBRARY
from evaluator.work import Work

CHECK_SECONDS = 60.0
FINDINGS_BYTES = 16 << 20
NAMED = 20
ORDER = (LIBRARY, ENTRY)


class Found(Record):
    kind: str
    line: int = Field(ge=1)
    text: str


class Findings(Record):
    imports: tuple[str, ...]
    findings: tuple[Found, ...]


def run(work: Work, bench: Bench) -> StageResult[PolicyEvidence]:
    misfit = _misfit(work.candidate)
    if misfit:
        return StageResult(stage=Stage.POLICY, verdict=Verdict.COMPILE_ERROR, message=misfit)
    told = specification(work)
    with bench.sandbox.scratch() as workspace:
        lay_out(work, plan(work, bench.toolchain), workspace)
        report = run_tracer("check", told, bench, workspace, timeout_seconds=CHECK_SECONDS)
        data = read_output(workspace, f"out/{FINDINGS}", limit_bytes=FINDINGS_BYTES)
    return judge(report, _findings(data), file=work.candidate.entry_file)


def _misfit(candidate: Candidate) -> str:
    path = PurePosixPath(candidate.entry_file)
    if len(candidate.sources) > 1:
        names = ", ".join(source.path for source in candidate.sources)
        return f"a Triton candidate is one file, seen {len(candidate.sources)}: {names}"
    if path.suffix != ".py" or not path.stem.isidentifier() or len(path.parts) > 1:
        return f"a Triton candidate is one Python file such as 'kernel.py', seen {str(path)!r}"
    return ""


def _findings(data: bytes | None) -> Findings | None:
    if data is None:
        return None
    try:
        return Findings.model_validate(strict_loads(data))
    except (InvalidJson, ValidationError) as error:
        raise EvaluatorFault(f"policy: our reader left no readable findings: {error}") from error


def judge(
    report: ProcessReport, found: Findings | None, *, file: str
) -> StageResult[PolicyEvidence]:
    """Library work first, since it decides the verdict; then the entry point; then the rest."""
    findings = sorted(found.findings, key=lambda one: _rank(one.kind)) if found else []
    lines = [f"{file}:{one.line}: error: {one.text}" for one in findings]
    evidence = PolicyEvidence(
        command=report.command,
        header_count=len(found.imports) if found else 0,
        banned_headers=_named(findings, library=True),
        unavailable_headers=_named(findings, library=False),
        log="\n".join(lines[:NAMED]) if found else report.output_tail[-2000:],
    )
    verdict, message = _decide(report, found, findings, file)
    return StageResult(stage=Stage.POLICY, verdict=verdict, message=message, evidence=evidence)


def _rank(kind: str) -> int:
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _named(findings: Sequence[Found], *, library: bool) -> tuple[str, ...]:
    wanted = [one for one in findings if (one.kind == LIBRARY) is library]
    return tuple(f"line {one.line}: {one.text.split(':')[0]}"[:200] for one in wanted[:NAMED])


def _decide(
    report: ProcessReport, found: Findings | None, findings: Sequence[Found], file: str
) -> tuple[Verdict, str]:
    if found is None:
        if report.ending is Ending.TIMED_OUT:
            return Verdict.TIMEOUT, f"reading {file} did not end within {CHECK_SECONDS:.0f} s"
        end = report.detail or f"exit code {report.exit_code}"
        return Verdict.COMPILE_ERROR, f"{file} cannot be parsed: nested too deeply ({end})"
    if not findings:
        return Verdict.PASSED, f"{len(found.imports)} imports, none of a library that does the work"
    first = findings[0]
    verdicts = {LIBRARY: Verdict.BANNED_LIBRARY, ENTRY: Verdict.ENTRY_POINT_MISSING}
    message = f"{file}:{first.line}: {first.text}"
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return verdicts.get(first.kind, Verdict.COMPILE_ERROR), message + more
