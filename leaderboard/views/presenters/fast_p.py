"""Fast_p of several models on one problem: two drawings, and the table of the same numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.metrics.curves import Curve as Turns
from evaluator.metrics.turns import Band
from leaderboard.charts.fast_p import Curve, FastP, Step, axis_end, fast_p_chart, series_css

MOST_BANDS = 3
"""More bands over each other cannot be told apart; the table has every range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A model's turns on the problem; `number` fixes its colour over the whole board.

    note  what tells it from another row of the same name; "" where nothing has to
    """

    key: str
    name: str
    note: str
    number: int
    turns: Turns
    knows_instructions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Fast_p at the pinned p over variants, and the best speedup; None: nothing known."""

    band: Band | None
    best: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRow:
    shown: Shown
    any_instructions: Measured
    with_instructions: Measured | None

    @property
    def css(self) -> str:
        return series_css(self.shown.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`target_chart` is None where no turn is known to have run the target's instructions."""

    problem: str
    title: str
    chart: FastP
    target_chart: FastP | None
    rows: tuple[PanelRow, ...]
    has_families: bool

    @property
    def charts(self) -> tuple[tuple[str, FastP], ...]:
        with_instructions = (("target instructions only", self.target_chart),)
        some = with_instructions if self.target_chart else ()
        return (*((name, one) for name, one in some if one), ("any instructions", self.chart))


def panel(
    problem: str,
    title: str,
    models: Sequence[Shown],
    *,
    p: float,
    at_most: int,
    noise: float,
    has_families: bool,
) -> Panel:
    """Of the models in this order; the one that leads comes first."""
    rows = tuple(_row(one, p, at_most, has_families) for one in models)
    end = axis_end(row.any_instructions.best for row in rows)

    def chart(instructions: bool, some: Sequence[Shown]) -> FastP:
        curves = [_curve(one, at_most, instructions) for one in some]
        return fast_p_chart(curves, end=end, pinned=p, noise=noise, bands=MOST_BANDS)

    ran = [row.shown for row in rows if row.with_instructions]
    has_target = any(row.with_instructions and row.with_instructions.best for row in rows)
    return Panel(
        problem=problem,
        title=title,
        chart=chart(False, models),
        target_chart=chart(True, ran) if has_target else None,
        rows=rows,
        has_families=has_families,
    )


def _curve(one: Shown, at_most: int, instructions: bool) -> Curve:
    steps = one.turns.band_points(at_most=at_most, instructions=instructions)
    return Curve(
        name=one.name,
        number=one.number,
        steps=tuple(Step(p=p, mean=band.mean, low=band.low, high=band.high) for p, band in steps),
        best=one.turns.steps(at_most=at_most, instructions=instructions).best_speedup,
    )


def _row(one: Shown, p: float, at_most: int, has_families: bool) -> PanelRow:
    with_instructions = None
    if has_families and one.knows_instructions:
        with_instructions = _measured(one.turns, p, at_most, True)
    return PanelRow(
        shown=one,
        any_instructions=_measured(one.turns, p, at_most, False),
        with_instructions=with_instructions,
    )


def _measured(turns: Turns, p: float, at_most: int, instructions: bool) -> Measured:
    return Measured(
        band=turns.band(p, at_most=at_most, instructions=instructions),
        best=turns.steps(at_most=at_most, instructions=instructions).best_speedup,
    )
