"""Models as points: how far they came against what it took, or against when they came out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from leaderboard.charts.fast_p import series_css
from leaderboard.charts.scales import Scale, Tick, padded

WIDTH, HEIGHT = 520, 320
LEFT, RIGHT, TOP, BOTTOM = 48, 504, 14, 276


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """`number` is the model's colour on the board; `mark` names the point in the table beside."""

    name: str
    mark: str
    number: int
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    point: Point
    x: str
    y: str

    @property
    def css(self) -> str:
        return series_css(self.point.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upright:
    """A moment on the axis with its name."""

    x: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    name: str
    x_title: str
    y_title: str
    dots: tuple[Dot, ...]
    across: tuple[Tick, ...]
    down: tuple[Tick, ...]
    uprights: tuple[Upright, ...] = ()


def scatter_chart(
    points: Sequence[Point], *, name: str, x_title: str, y_title: str, is_share: bool
) -> Scatter | None:
    """`x` on a logarithmic axis; None where fewer than two points can be drawn."""
    shown = [one for one in points if one.x > 0]
    if len(shown) < 2:
        return None
    xs = [one.x for one in shown]
    x = Scale(low=min(xs) / 1.5, high=max(xs) * 1.5, start=LEFT, end=RIGHT, log=True)
    y, down = _upward(shown, is_share)
    return Scatter(
        name=name,
        x_title=x_title,
        y_title=y_title,
        dots=_dots(shown, x, y),
        across=tuple(Tick(at=one.at, text=_short(float(one.text))) for one in x.ticks()),
        down=down,
    )


def release_chart(
    points: Sequence[Point], moments: Sequence[tuple[str, date]], *, name: str, y_title: str
) -> Scatter | None:
    """`x` of a point is its date's ordinal; `moments` are drawn as uprights."""
    if len(points) < 2:
        return None
    days = [*(one.x for one in points), *(float(day.toordinal()) for _, day in moments)]
    low, high = padded(min(days), max(days), 0.06)
    x = Scale(low=low, high=high, start=LEFT, end=RIGHT)
    y, down = _upward(points, False)
    years = range(date.fromordinal(int(low)).year + 1, date.fromordinal(int(high)).year + 1)
    return Scatter(
        name=name,
        x_title="date of the model",
        y_title=y_title,
        dots=_dots(points, x, y),
        across=tuple(
            Tick(at=f"{x(float(date(year, 1, 1).toordinal())):.1f}", text=str(year))
            for year in years
        ),
        down=down,
        uprights=tuple(
            Upright(x=f"{x(float(day.toordinal())):.1f}", name=what) for what, day in moments
        ),
    )


def _upward(points: Sequence[Point], is_share: bool) -> tuple[Scale, tuple[Tick, ...]]:
    _, high = padded(0.0, max(max(one.y for one in points), 0.01))
    y = Scale(low=0.0, high=high, start=BOTTOM, end=TOP)
    text = (lambda value: f"{float(value) * 100:g}%") if is_share else (lambda value: value)
    return y, tuple(Tick(at=one.at, text=text(one.text)) for one in y.ticks())


def _dots(points: Sequence[Point], x: Scale, y: Scale) -> tuple[Dot, ...]:
    """The first point lies on top."""
    return tuple(
        Dot(point=one, x=f"{x(one.x):.1f}", y=f"{y(one.y):.1f}") for one in reversed(points)
    )


def _short(value: float) -> str:
    """`20000` as `20k`."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
