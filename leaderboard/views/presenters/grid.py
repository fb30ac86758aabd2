"""The grid of boards: problems down, targets across, the leader in each cell."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from evaluator import SCORING_VERSION
from evaluator.targets import TARGETS, Target
from leaderboard.models import Evaluation, Problem

GROUPS = ((False, "Measured problems"), (True, "Small twins for development"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    speedup: float
    entrant: str
    kernel: str
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    target: Target
    offered: bool
    leader: Leader | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    problem: Problem
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    targets: tuple[Target, ...]
    groups: tuple[tuple[str, tuple[GridRow, ...]], ...]


def leaders() -> dict[tuple[str, str], Leader]:
    """The first row of every board by (target, measured digest), with its size; one query."""
    board = [F("target"), F("problem__measured_digest")]
    current = Problem.objects.current().values("measured_digest")
    best = ("-speedup", "submission__created_at", "submission_id")
    rows = (
        Evaluation.objects.valid()
        .filter(
            problem__measured_digest__in=current,
            speedup__isnull=False,
            scoring_version=SCORING_VERSION,
            trust__in=[Evaluation.Trust.VERIFIED, Evaluation.Trust.REPRODUCED],
        )
        .annotate(
            place=Window(RowNumber(), partition_by=board, order_by=best),
            row_count=Window(Count("id"), partition_by=board),
        )
        .filter(place=1)
        .values_list(
            "target",
            "problem__measured_digest",
            "speedup",
            "submission__entrant__display_name",
            "submission__name",
            "row_count",
        )
    )
    return {
        (target, measured): Leader(
            speedup=speedup, entrant=entrant, kernel=kernel, row_count=row_count
        )
        for target, measured, speedup, entrant, kernel, row_count in rows
    }


def board_grid(problems: Iterable[Problem], best: dict[tuple[str, str], Leader]) -> Grid:
    rows = [GridRow(problem=problem, cells=_cells(problem, best)) for problem in problems]
    groups = tuple(
        (title, tuple(row for row in rows if row.problem.development is development))
        for development, title in GROUPS
    )
    return Grid(targets=tuple(TARGETS.values()), groups=tuple(pair for pair in groups if pair[1]))


def _cells(problem: Problem, best: dict[tuple[str, str], Leader]) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            target=target,
            offered=target.slug in problem.targets,
            leader=best.get((target.slug, problem.measured_digest)),
        )
        for target in TARGETS.values()
    )
