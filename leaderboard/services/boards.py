"""A board: ranked rows of one problem on one target, and the unranked row of the baseline."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.db.models import Count, Max, Q

from evaluator import SCORING_VERSION
from evaluator.targets import TARGETS, Target
from leaderboard.models import Evaluation, Problem
from leaderboard.services.resources import Resources, resources_by_job

MOST_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Measured beside each kernel: the median over the board's rows, all of one version."""

    name: str
    version: str | None
    latency_ns: float | None
    sample_count: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """`resources` by the key of a row's job; a build that recorded none is missing."""

    target: Target
    problem: Problem
    scoring_version: str
    baseline: Baseline
    rows: list[Evaluation]
    resources: Mapping[object, Resources]
    row_count: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Every row of a board by its key, the first one first, and what ranks are made of.

    speedups, lows, highs  each sorted upwards
    """

    keys: tuple[int, ...]
    speedups: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def rank(self, speedup: float) -> int:
        """Equal speedups share a rank, and the next rank counts them all."""
        return len(self.speedups) - bisect_right(self.speedups, speedup) + 1

    def band(self, low: float, high: float) -> tuple[int, int]:
        """The best and the worst rank that an interval allows, over all rows of the board.

        Ahead for certain are the rows whose whole interval lies above this one; behind for
        certain are those whose whole interval lies below.
        """
        ahead = len(self.lows) - bisect_right(self.lows, high)
        not_behind = len(self.highs) - bisect_left(self.highs, low)
        return ahead + 1, not_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardState:
    """What a board is made of, in one cheap query: records are append-only, so counts tell."""

    newest: int | None
    count: int
    valid_count: int
    corrections: int
    updated_at: datetime | None

    @property
    def parts(self) -> tuple[object, ...]:
        counts = (self.newest, self.count, self.valid_count, self.corrections)
        return (SCORING_VERSION, *counts)


def board_state(*, target: str, problem: Problem) -> BoardState:
    rows = Evaluation.objects.filter(target=target, problem__name=problem.name)
    ranked = Q(valid=True, speedup__isnull=False, scoring_version=SCORING_VERSION)
    return BoardState(
        **rows.aggregate(
            newest=Max("id"),
            count=Count("id", distinct=True),
            valid_count=Count("id", filter=Q(valid=True), distinct=True),
            corrections=Count("corrections", distinct=True),
            updated_at=Max("created_at", filter=ranked),
        )
    )


def board_read(*, target: str, problem: Problem, start: int = 0, count: int | None = None) -> Board:
    """Three queries for `count` rows from `start`, at most MOST_ROWS.

    Each row carries `rank`, its submission's entrant, and `band`, the ranks that its interval
    allows (see Intervals.band). The baseline is the median over these rows.
    """
    count = MOST_ROWS if count is None else count
    order = _order(target, problem)
    rows = _rows(order.keys[start : start + count])
    for row in rows:
        row.rank = order.rank(row.speedup)
        row.band = order.band(row.speedup_low, row.speedup_high)
    return Board(
        target=TARGETS[target],
        problem=problem,
        scoring_version=SCORING_VERSION,
        baseline=_baseline(problem, rows),
        rows=rows,
        resources=resources_by_job(row.job_id for row in rows),
        row_count=len(order.keys),
        is_cut=start + len(rows) < len(order.keys),
    )


def _order(target: str, problem: Problem) -> Order:
    """Four numbers a row, however long the board: its rows are read only where they are shown."""
    ranked = Evaluation.objects.ranked(target=target, problem=problem)
    found = list(ranked.values_list("pk", "speedup", "speedup_low", "speedup_high"))
    columns = list(zip(*found, strict=True)) or [(), (), (), ()]
    speedups, lows, highs = (tuple(sorted(one)) for one in columns[1:])
    return Order(keys=tuple(columns[0]), speedups=speedups, lows=lows, highs=highs)


def _rows(keys: Sequence[int]) -> list[Evaluation]:
    found = Evaluation.objects.with_entrants().in_bulk(keys)
    return [found[key] for key in keys if key in found]


def _baseline(problem: Problem, rows: list[Evaluation]) -> Baseline:
    if not rows:
        return Baseline(
            name=problem.record.baseline.name,
            version=None,
            latency_ns=None,
            sample_count=None,
            reason="not measured yet: it is measured beside each kernel",
        )
    newest = max(rows, key=lambda row: row.created_at)
    alike = [
        row
        for row in rows
        if (row.baseline_name, row.baseline_version)
        == (newest.baseline_name, newest.baseline_version)
    ]
    return Baseline(
        name=newest.baseline_name,
        version=newest.baseline_version,
        latency_ns=median(row.baseline_latency_ns or 0.0 for row in alike),
        sample_count=sum(row.baseline_sample_count or 0 for row in alike),
    )
