"""Reports of admission that go with the problem set: `ptxboard admit NAME --write` makes them.

A report counts for the very version of a problem that it was made with, which its digest names.
"""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from evaluator.records.admission import AdmissionReport
from evaluator.records.problem import Problem

FOLDER = Path(str(files(__name__)))


def admission_of(problem: Problem) -> AdmissionReport | None:
    """The report on this version; None where it was not run, or on another version only."""
    report = _stored().get(problem.name)
    return report if report and report.problem_digest == problem.digest else None


def refusals(problems: Iterable[Problem]) -> list[str]:
    """A sentence per problem that its report refuses."""
    found = ((problem.name, admission_of(problem)) for problem in problems)
    return [
        f"{name} is refused: {'; '.join(report.reasons)}"
        for name, report in found
        if report is not None and not report.admitted
    ]


def store(report: AdmissionReport, folder: Path = FOLDER) -> Path:
    path = folder / f"{report.problem}.json"
    path.write_text(report.to_json() + "\n", encoding="utf-8")
    return path


@cache
def _stored() -> dict[str, AdmissionReport]:
    reports = (
        AdmissionReport.from_json(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))
    )
    return {report.problem: report for report in reports}
