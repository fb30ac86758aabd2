"""A paper's own figures as published rows: shown beside what was measured, never ranked with it."""

from pathlib import Path
from typing import Annotated

from django.db import transaction
from django.utils import timezone
from pydantic import Field

from evaluator.metrics.turns import Triplet
from evaluator.records.base import Record
from evaluator.targets import TARGETS
from leaderboard.models import ModelStanding, Problem
from leaderboard.services.imports import REPORTER, reported_entrant, reporter_of
from leaderboard.services.imports_notes import PUBLISHED_FOLDER
from leaderboard.services.standings_update import PUBLISHED, triplet_columns

PTXBENCH_RESULTS = PUBLISHED_FOLDER / "ptxbench_results.json"

Percent = Annotated[float, Field(ge=0, le=100)]
Speedup = Annotated[float, Field(gt=0, le=1000)]


class Rates(Record):
    """Per cent at <= 1, <= 4, <= 8 turns; None: no such turn, so 0."""

    target: tuple[Percent | None, Percent | None, Percent | None]
    any: tuple[Percent | None, Percent | None, Percent | None]


class Bests(Record):
    target: tuple[Speedup | None, Speedup | None, Speedup | None]
    any: tuple[Speedup | None, Speedup | None, Speedup | None]


class PublishedRow(Record):
    model: str = Field(min_length=1, max_length=100)
    target: str
    problem: str
    source: str
    rate_percent: Rates
    best: Bests


class Publication(Record):
    """`planned_turns`: N of each row by the paper's protocol."""

    source: str = Field(min_length=1)
    licence: str
    note: str = ""
    planned_turns: Annotated[int, Field(gt=0, le=1_000_000)]
    language: str
    level: str
    scoring_version: str = Field(max_length=20)
    rows: tuple[PublishedRow, ...]


@transaction.atomic
def published_load(*, path: Path = PTXBENCH_RESULTS, reporter: str = REPORTER) -> int:
    """Every row of the file in the place of what was loaded of it before; how many.

    Raises ValueError (a field, problem or target that cannot be, a row told twice), OSError.
    """
    told = Publication.from_json(path.read_bytes())
    problems = {row.name: row for row in Problem.objects.current()}
    _check(told, problems)
    owner = reporter_of(reporter)
    source = f"{told.source}, "
    ModelStanding.objects.filter(trust=PUBLISHED, source__startswith=source).delete()
    ModelStanding.objects.bulk_create(
        ModelStanding(
            entrant=reported_entrant(owner, row.model),
            problem_name=row.problem,
            measured_digest=problems[row.problem].measured_digest,
            target=row.target,
            language=told.language,
            level=told.level,
            scoring_version=told.scoring_version,
            trust=PUBLISHED,
            planned_turns=told.planned_turns,
            source=source + row.source,
            updated_at=timezone.now(),
            **_columns(row),
        )
        for row in told.rows
    )
    return len(told.rows)


def _check(told: Publication, problems: dict[str, Problem]) -> None:
    seen = set()
    for place, row in enumerate(told.rows):
        where = f"rows[{place}]"
        if row.problem not in problems:
            known = ", ".join(problems)
            raise ValueError(f"{where}.problem: no problem {row.problem!r}; known: {known}")
        if row.target not in TARGETS or row.target not in problems[row.problem].targets:
            offered = ", ".join(problems[row.problem].targets)
            raise ValueError(f"{where}.target: {row.target!r} is not one of: {offered}")
        key = (row.model, row.target, row.problem)
        if key in seen:
            raise ValueError(f"{where}: {', '.join(key)} is told twice")
        seen.add(key)


def _columns(row: PublishedRow) -> dict[str, float | None]:
    rates, bests = row.rate_percent, row.best
    return {
        **triplet_columns("rate", _shares(rates.any)),
        **triplet_columns("target_rate", _shares(rates.target)),
        **triplet_columns("best", _triplet(bests.any)),
        **triplet_columns("target_best", _triplet(bests.target)),
    }


def _shares(percent: tuple[float | None, ...]) -> Triplet:
    return _triplet(tuple((value or 0.0) / 100 for value in percent))


def _triplet(values: tuple[float | None, ...]) -> Triplet:
    first, fourth, eighth = values
    return Triplet(first=first, fourth=fourth, eighth=eighth)
