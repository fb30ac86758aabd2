"""Two to four models side by side on one target: triplets, Fast_p, and what it took."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leaderboard.models import Entrant, ModelStanding
from leaderboard.services.standings import TargetBoard
from leaderboard.services.standings_filters import BoardFilters
from leaderboard.views.presenters.efforts import Efforts, efforts
from leaderboard.views.presenters.fast_p import Panel
from leaderboard.views.presenters.target_boards import RowView, panels, row_view

MOST_COLUMNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """`columns`: a model under one set of conditions each, in the order that was asked for."""

    board: TargetBoard
    columns: tuple[RowView, ...]
    panels: tuple[Panel, ...]
    efforts: Efforts
    missing: tuple[Entrant, ...]

    @property
    def filters(self) -> BoardFilters:
        return self.board.filters

    @property
    def score_name(self) -> str:
        return f"Fast_{self.filters.p:g}"

    @property
    def has_families(self) -> bool:
        return bool(self.board.target.families)

    @property
    def rows(self) -> tuple[tuple[str, str, tuple[tuple[object, object], ...]], ...]:
        """(problem, title, (rates, bests) of each column)."""
        return tuple(
            (
                name,
                self.board.titles[name],
                tuple((one.rates[place], one.bests[place]) for one in self.columns),
            )
            for place, name in enumerate(self.board.problems)
        )


def model_comparison(board: TargetBoard, entrants: Sequence[Entrant]) -> ModelComparison:
    """One query for the curves. Problems that none of them tried are left out."""
    order = {one.pk: place for place, one in enumerate(entrants)}
    found = [row for row in board.rows if row.entrant.pk in order]
    rows = sorted(found, key=lambda row: order[row.entrant.pk])[:MOST_COLUMNS]
    tried = tuple(name for name in board.problems if any(name in row.cells for row in rows))
    narrow = replace(board, problems=tried)
    numbers = {row.key: place for place, row in enumerate(rows)}
    measured = [row for row in rows if row.trust != ModelStanding.Trust.PUBLISHED]
    here = {row.entrant.pk for row in rows}
    return ModelComparison(
        board=narrow,
        columns=tuple(
            row_view(row, narrow, numbers[row.key], is_mine=False, is_drawn=True) for row in rows
        ),
        panels=panels(narrow, measured, numbers),
        efforts=efforts(narrow, measured, numbers),
        missing=tuple(one for one in entrants if one.pk not in here),
    )


def targets_of(entrants: Sequence[Entrant]) -> frozenset[str]:
    """Targets on which at least one of them stands."""
    rows = ModelStanding.objects.filter(entrant__in=entrants)
    return frozenset(rows.order_by().values_list("target", flat=True).distinct())
