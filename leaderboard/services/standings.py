"""The board of a target: models x problems, read from standings. Page, API, CSV and badge use it.

One query for the cells and three small ones; the numbers were computed when turns closed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Q, QuerySet

from evaluator.metrics.curves import Curve, curve_from_json
from evaluator.metrics.turns import THRESHOLDS, Triplet
from evaluator.records.base import digest_of
from evaluator.targets import TARGETS, Target
from leaderboard.models import ModelStanding, Problem
from leaderboard.services.standings_filters import MEASURED, BoardFilters

NANO = 10**9
TRIPLETS = ("rate", "target_rate", "best", "target_best")
COLUMNS = (
    "id",
    "problem_name",
    "language",
    "level",
    "scoring_version",
    "trust",
    "planned_turns",
    "taken_turns",
    "excluded_turns",
    "unmetered_turns",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_nano_usd",
    "knows_instructions",
    "run_count",
    "newest_run_id",
    "is_final",
    "source",
    "updated_at",
    "fast_json",
    *(f"{name}_{limit}" for name in TRIPLETS for limit in (1, 4, 8)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Who is ranked."""

    pk: int
    slug: str
    display_name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model on one problem. Shares are fractions of `planned_turns`; None is unknown.

    target_rates, target_bests   None values with `knows_instructions` False: no evidence
    share                        Fast_p by which the board is ranked; None where it is not known
    fast, target_fast            Fast_p at THRESHOLDS and <= 8 turns
    """

    standing: int
    problem: str
    rates: Triplet
    target_rates: Triplet
    bests: Triplet
    target_bests: Triplet
    fast: tuple[float | None, ...] | None
    target_fast: tuple[float | None, ...] | None
    share: float | None
    knows_instructions: bool
    planned_turns: int
    taken_turns: int | None
    excluded_turns: int
    unmetered_turns: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    run_count: int
    newest_run: UUID | None
    is_final: bool
    source: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One model under one set of conditions; `cells` by problem, in no row where it has none.

    rank    1 for the best, equal ones share it; None: published figures are never ranked
    score   mean share over all problems of the board, a missing one counts as 0
    """

    entrant: Entry
    language: str
    level: str
    scoring_version: str
    trust: str
    cells: dict[str, Cell]
    score: float | None
    mean_rate: float | None
    best_speedup: float | None
    is_complete: bool
    rank: int | None = None

    @property
    def key(self) -> str:
        """Names the row in addresses: badge, anchor."""
        parts = (self.entrant.slug, self.language, self.level, self.scoring_version, self.trust)
        return digest_of(list(parts))[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBoard:
    """Rows in board order: ranked ones first, then published ones."""

    target: Target
    problems: tuple[str, ...]
    titles: dict[str, str]
    filters: BoardFilters
    rows: tuple[ModelRow, ...]
    updated_at: datetime | None
    tag: str

    @property
    def ranked(self) -> list[ModelRow]:
        return [row for row in self.rows if row.rank is not None]

    @property
    def published(self) -> list[ModelRow]:
        return [row for row in self.rows if row.rank is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingState:
    """What every board of a target is made of, in one cheap query."""

    count: int
    newest: int | None
    updated_at: datetime | None


def standing_state(target: str) -> StandingState:
    """Standings are rewritten when a turn closes, so their number and newest time tell."""
    seen = ModelStanding.objects.filter(target=target).aggregate(
        count=Count("pk"), newest=Max("pk"), updated_at=Max("updated_at")
    )
    return StandingState(**seen)


def board_tag_of(target: str) -> str:
    """Digest of what every board of a target is made of; two queries."""
    state = standing_state(target)
    parts = [state.count, state.newest, str(state.updated_at), _catalogue_digest()]
    return digest_of([str(part) for part in parts])[:32]


def _catalogue_digest() -> str:
    rows = Problem.objects.current().values_list("name", "digest", "position", "title")
    return digest_of([list(map(str, row)) for row in rows])


def target_board(
    *, target: str, filters: BoardFilters | None = None, tag: str | None = None
) -> TargetBoard:
    """The board, ranked; four queries, and two where nothing changed since it was read last.

    `tag`: what `board_tag_of(target)` said a moment ago, which spares two. Raises KeyError for a
    target that is not known.
    """
    return _board(TARGETS[target], filters or BoardFilters(), tag or board_tag_of(target))


@lru_cache(maxsize=64)
def _board(place: Target, filters: BoardFilters, tag: str) -> TargetBoard:
    """Frozen, so that every reader of this state and these filters may share it."""
    problems = [
        one
        for one in Problem.objects.current().defer("record_json")
        if place.slug in one.targets and one.development == place.development
    ]
    wanted = {one.name: one.measured_digest for one in problems}
    found = list(_rows(place, filters, wanted))
    filled = {name for row in found for name in row.cells}
    columns = [one for one in problems if one.name in filled] or problems
    return TargetBoard(
        target=place,
        problems=tuple(one.name for one in columns),
        titles={one.name: one.title for one in columns},
        filters=filters,
        rows=tuple(_ranked(found, filters, [one.name for one in columns])),
        updated_at=max(
            (cell.updated_at for row in found for cell in row.cells.values()), default=None
        ),
        tag=tag,
    )


def standings_of(target: str, filters: BoardFilters) -> QuerySet[ModelStanding]:
    """The cells that the filters let through."""
    ours = Q(scoring_version=filters.scoring_version) | ~Q(trust__in=MEASURED)
    rows = ModelStanding.objects.filter(ours, target=target, trust__in=filters.trust)
    if filters.language:
        rows = rows.filter(language=filters.language)
    if filters.level:
        rows = rows.filter(level="" if filters.level == "none" else filters.level)
    return rows


def _rows(place: Target, filters: BoardFilters, wanted: dict[str, str]) -> Iterator[ModelRow]:
    """One query; the curves come along only where a share is asked for that is not kept."""
    kept = filters.p in THRESHOLDS and filters.at_most == 8
    names = ["measured_digest", *COLUMNS, *([] if kept else ["curve_json"])]
    entry = [f"entrant__{name}" for name in ("id", "slug", "display_name", "kind")]
    rows = standings_of(place.slug, filters).order_by("entrant__slug", "id")
    groups: dict[tuple[object, ...], tuple[Entry, dict[str, Any], dict[str, Cell]]] = {}
    for row in rows.values(*names, *entry):
        if wanted.get(row["problem_name"]) != row["measured_digest"]:
            continue
        key = (row["entrant__id"], *(row[name] for name in CONDITIONS))
        if key not in groups:
            groups[key] = (_entry(row), {name: row[name] for name in CONDITIONS}, {})
        groups[key][2][row["problem_name"]] = _cell(row, filters)
    for entrant, conditions, cells in groups.values():
        yield ModelRow(
            entrant=entrant,
            cells=cells,
            score=None,
            mean_rate=None,
            best_speedup=None,
            is_complete=False,
            **conditions,
        )


CONDITIONS = ("language", "level", "scoring_version", "trust")


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        pk=row["entrant__id"],
        slug=row["entrant__slug"],
        display_name=row["entrant__display_name"],
        kind=row["entrant__kind"],
    )


def _cell(row: dict[str, Any], filters: BoardFilters) -> Cell:
    fast, target_fast = json.loads(row["fast_json"])
    cost = row["cost_nano_usd"]
    same = ("planned_turns", "taken_turns", "excluded_turns", "unmetered_turns", "prompt_tokens")
    more = ("completion_tokens", "reasoning_tokens", "run_count", "knows_instructions", "is_final")
    return Cell(
        standing=row["id"],
        problem=row["problem_name"],
        rates=_triplet(row, "rate"),
        target_rates=_triplet(row, "target_rate"),
        bests=_triplet(row, "best"),
        target_bests=_triplet(row, "target_best"),
        fast=tuple(fast) if fast else None,
        target_fast=tuple(target_fast) if target_fast else None,
        share=_share(row, filters, target_fast if filters.instructions else fast),
        cost_usd=None if cost is None else cost / NANO,
        newest_run=row["newest_run_id"],
        source=row["source"],
        updated_at=row["updated_at"],
        **{name: row[name] for name in (*same, *more)},
    )


def _triplet(row: dict[str, Any], name: str) -> Triplet:
    return Triplet(first=row[f"{name}_1"], fourth=row[f"{name}_4"], eighth=row[f"{name}_8"])


def _share(
    row: dict[str, Any], filters: BoardFilters, fast: list[float | None] | None
) -> float | None:
    if filters.instructions and not row["knows_instructions"]:
        return None
    if "curve_json" not in row:
        return fast[THRESHOLDS.index(filters.p)] if fast else None
    curve = curve_from_json(json.loads(row["curve_json"]))
    steps = curve.steps(at_most=filters.at_most, instructions=filters.instructions)
    return steps.fast_p(filters.p)


def _ranked(rows: list[ModelRow], filters: BoardFilters, problems: list[str]) -> Iterator[ModelRow]:
    """By score, then correctness, then best speedup; competition ranks, published rows last."""
    scored = [_scored(row, filters, problems) for row in rows]
    if filters.complete:
        scored = [row for row in scored if row.is_complete]
    scored.sort(key=lambda row: (not _is_ranked(row), _order(row), row.entrant.slug, row.key))
    rank, before = 0, None
    for place, row in enumerate(scored, 1):
        if not _is_ranked(row):
            yield row
            continue
        if _order(row) != before:
            rank, before = place, _order(row)
        yield replace(row, rank=rank)


def _is_ranked(row: ModelRow) -> bool:
    return row.trust != ModelStanding.Trust.PUBLISHED


def _order(row: ModelRow) -> tuple[float, ...]:
    """Ascending: the best first, what is not known last."""
    values = (row.score, row.mean_rate, row.best_speedup)
    return tuple(1.0 if value is None else -value for value in values)


def _scored(row: ModelRow, filters: BoardFilters, problems: list[str]) -> ModelRow:
    cells = [row.cells.get(name) for name in problems]
    shares = [cell.share for cell in cells if cell and cell.share is not None]
    rates = [rate for cell in cells if cell and (rate := _rate(cell, filters)) is not None]
    bests = [best for cell in cells if cell and (best := _best(cell, filters)) is not None]
    return replace(
        row,
        score=sum(shares) / len(problems) if shares else None,
        mean_rate=sum(rates) / len(problems) if rates else None,
        best_speedup=max(bests, default=None),
        is_complete=all(cell is not None and cell.is_final for cell in cells),
    )


def _rate(cell: Cell, filters: BoardFilters) -> float | None:
    return (cell.target_rates if filters.instructions else cell.rates).eighth


def _best(cell: Cell, filters: BoardFilters) -> float | None:
    return (cell.target_bests if filters.instructions else cell.bests).eighth


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemCurve:
    """One model's whole curve on one problem, for the Fast_p panel."""

    standing: int
    entrant: Entry
    language: str
    level: str
    scoring_version: str
    trust: str
    is_final: bool
    knows_instructions: bool
    curve: Curve


def problem_curves(*, target: str, problem: Problem, filters: BoardFilters) -> list[ProblemCurve]:
    """Of every model on the board that has one, highest Fast_p at the pinned p first; one query."""
    rows = standings_of(target, filters).filter(
        problem_name=problem.name, measured_digest=problem.measured_digest
    )
    rows = rows.exclude(trust=ModelStanding.Trust.PUBLISHED).select_related("entrant")
    found = [_problem_curve(row) for row in rows.order_by("entrant__slug", "id")]
    return sorted(found, key=lambda one: _curve_order(one, filters))


def _problem_curve(row: ModelStanding) -> ProblemCurve:
    who = row.entrant
    return ProblemCurve(
        standing=row.pk,
        entrant=Entry(pk=who.pk, slug=who.slug, display_name=who.display_name, kind=who.kind),
        language=row.language,
        level=row.level,
        scoring_version=row.scoring_version,
        trust=row.trust,
        is_final=row.is_final,
        knows_instructions=row.knows_instructions,
        curve=row.curve,
    )


def _curve_order(one: ProblemCurve, filters: BoardFilters) -> tuple[float, ...]:
    steps = one.curve.steps(at_most=filters.at_most, instructions=filters.instructions)
    values = (steps.fast_p(filters.p), steps.correctness_rate, steps.best_speedup)
    return tuple(1.0 if value is None else -value for value in values)
