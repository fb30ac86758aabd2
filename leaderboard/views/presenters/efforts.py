"""What models took to get where they stand: tokens, cost, and when they came out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean

from leaderboard.charts.fast_p import series_css
from leaderboard.charts.scatter import Point, Scatter, release_chart, scatter_chart
from leaderboard.services.releases import model_release, ptx_releases
from leaderboard.services.standings import ModelRow, TargetBoard

MOST_POINTS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Of one row over all of its problems; a turn is one that was taken. None: nobody told.

    mean_best  over the problems that have one
    """

    row: ModelRow
    mark: str
    number: int
    reasoning_tokens: float | None
    completion_tokens: float | None
    cost_usd: float | None
    score: float | None
    mean_best: float | None
    released: date | None

    @property
    def css(self) -> str:
        return series_css(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Efforts:
    charts: tuple[Scatter, ...]
    rows: tuple[Effort, ...]


def efforts(board: TargetBoard, rows: Sequence[ModelRow], numbers: dict[str, int]) -> Efforts:
    """Of the first rows, each with a letter that names its point."""
    some = [
        _effort(row, chr(ord("A") + place), numbers[row.key])
        for place, row in enumerate(rows[:MOST_POINTS])
    ]
    score = f"Fast_{board.filters.p:g}"
    found = (
        scatter_chart(
            [_point(one, one.reasoning_tokens, one.score) for one in some if _has_tokens(one)],
            name="reasoning",
            x_title="reasoning tokens a turn",
            y_title=score,
            is_share=True,
        ),
        scatter_chart(
            [_point(one, one.cost_usd, one.score) for one in some if one.cost_usd],
            name="cost",
            x_title="US dollars a turn",
            y_title=score,
            is_share=True,
        ),
        release_chart(
            [
                _point(one, float(one.released.toordinal()), one.mean_best)
                for one in some
                if one.released and one.mean_best is not None
            ],
            ptx_releases(),
            name="release",
            y_title="mean best speedup",
        ),
    )
    return Efforts(charts=tuple(one for one in found if one), rows=tuple(some))


def _has_tokens(one: Effort) -> bool:
    return bool(one.reasoning_tokens)


def _point(one: Effort, x: float | None, y: float | None) -> Point:
    return Point(
        name=one.row.entrant.display_name,
        mark=one.mark,
        number=one.number,
        x=x or 0.0,
        y=y or 0.0,
    )


def _effort(row: ModelRow, mark: str, number: int) -> Effort:
    cells = list(row.cells.values())
    turns = sum((one.taken_turns or 0) + one.excluded_turns for one in cells)
    costs = [one.cost_usd for one in cells]
    bests = [one.bests.eighth for one in cells if one.bests.eighth is not None]

    def per_turn(total: float) -> float | None:
        return total / turns if turns and total else None

    return Effort(
        row=row,
        mark=mark,
        number=number,
        reasoning_tokens=per_turn(sum(one.reasoning_tokens for one in cells)),
        completion_tokens=per_turn(sum(one.completion_tokens for one in cells)),
        cost_usd=per_turn(sum(cost for cost in costs if cost is not None))
        if all(cost is not None for cost in costs)
        else None,
        score=row.score,
        mean_best=fmean(bests) if bests else None,
        released=model_release(row.entrant.display_name),
    )
