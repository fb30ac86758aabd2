"""Fast_p curves: the share of planned turns that are correct and faster than p, over p.

A step function, drawn as one: a value holds until the next measured speedup, and nothing is
smoothed. The band is the range over prompt variants.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leaderboard.charts.scales import Scale, Tick, step_path

WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 44, 508, 10, 262
COLORS, DASHES = 8, 3
NEAR_ONE, SHORTEST_AXIS, LONGEST_AXIS = 0.6, 0.05, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The value from `p` up to the next step's p: mean over variants, worst and best variant."""

    p: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One entrant's steps, beginning at p = 0; `number` fixes its colour and dash on a board."""

    name: str
    number: int
    steps: tuple[Step, ...]
    best: float | None

    @property
    def css(self) -> str:
        return series_css(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCurve:
    """`best_at` is where the best speedup stands on the axis; "" without one."""

    curve: Curve
    line: str
    band: str
    best_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FastP:
    """`noise` is the zone around p = 1 in which a difference means nothing: (x, width).

    one, noise, pinned  None where the axis ends before
    """

    curves: tuple[DrawnCurve, ...]
    across: tuple[Tick, ...]
    down: tuple[Tick, ...]
    one: str | None
    noise: tuple[str, str] | None
    pinned: str | None


def series_css(number: int) -> str:
    """Classes of a series: its colour, and a dash, so that colour is not the only cue."""
    return f"c{number % COLORS + 1} dash{number % DASHES}"


def axis_end(bests: Iterable[float | None]) -> float:
    """Where p ends: a little beyond the best speedup, and beyond 1 wherever 1 is near."""
    longest = max((best for best in bests if best is not None), default=1.0)
    wanted = max(1.2, longest * 1.08) if longest > NEAR_ONE else max(longest * 1.12, SHORTEST_AXIS)
    return min(wanted, LONGEST_AXIS)


def fast_p_chart(
    curves: Sequence[Curve], *, end: float, pinned: float, noise: float, bands: int = 3
) -> FastP:
    """`noise` is a share of the speedup; only the first `bands` curves have a band."""
    x = Scale(low=0.0, high=end, start=LEFT, end=RIGHT)
    y = Scale(low=0.0, high=1.0, start=BOTTOM, end=TOP)
    zone = (f"{x(1 - noise):.1f}", f"{x(1 + noise) - x(1 - noise):.1f}")
    return FastP(
        curves=tuple(_drawn(one, x, y, place < bands) for place, one in enumerate(curves)),
        across=x.ticks(),
        down=tuple(
            Tick(at=f"{y(share):.1f}", text=f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)
        ),
        one=f"{x(1.0):.1f}" if end > 1 else None,
        noise=zone if end > 1 else None,
        pinned=f"{x(pinned):.1f}" if pinned <= end else None,
    )


def _drawn(curve: Curve, x: Scale, y: Scale, has_band: bool) -> DrawnCurve:
    if not curve.steps:
        return DrawnCurve(curve=curve, line="", band="", best_at="")
    ends = [*(step.p for step in curve.steps[1:]), x.high]
    return DrawnCurve(
        curve=curve,
        line=step_path(_corners(curve.steps, ends, [step.mean for step in curve.steps], x, y)),
        band=_band(curve.steps, ends, x, y) if has_band else "",
        best_at=f"{x(curve.best):.1f}" if curve.best is not None else "",
    )


def _corners(
    steps: Sequence[Step], ends: Sequence[float], values: Sequence[float], x: Scale, y: Scale
) -> list[tuple[float, float]]:
    """Both ends of every flat piece, from left to right."""
    return [
        (x(edge), y(value))
        for step, end, value in zip(steps, ends, values, strict=True)
        for edge in (step.p, end)
    ]


def _band(steps: Sequence[Step], ends: Sequence[float], x: Scale, y: Scale) -> str:
    """Along the best variant and back along the worst; "" where they never differ."""
    if all(step.low == step.high for step in steps):
        return ""
    upper = _corners(steps, ends, [step.high for step in steps], x, y)
    lower = _corners(steps, ends, [step.low for step in steps], x, y)
    return f"{step_path([*upper, *reversed(lower)])}z"
