"""Timed calls of several kernels side by side: every call a tick, the quartiles a box."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from leaderboard.charts.fast_p import series_css
from leaderboard.charts.scales import Scale, Tick, padded

WIDTH = 960
LEFT, RIGHT, ROW, FOOT = 96, 944, 56, 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Spans in nanoseconds."""

    count: int
    minimum_ns: float
    low_ns: float
    median_ns: float
    high_ns: float
    maximum_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """`ticks` is one path with a short line a call; the rest are places on the canvas."""

    label: str
    css: str
    spread: Spread
    middle: int
    ticks: str
    box: tuple[str, str]
    median: str

    @property
    def top(self) -> int:
        return self.middle - 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    strips: tuple[Strip, ...]
    across: tuple[Tick, ...]
    height: int
    unit: str


def spread(spans_ns: Sequence[int]) -> Spread:
    """Of one call or more."""
    ordered = sorted(spans_ns)
    low, middle, high = quantiles(ordered, n=4) if len(ordered) > 1 else (ordered[0],) * 3
    return Spread(
        count=len(ordered),
        minimum_ns=ordered[0],
        low_ns=low,
        median_ns=middle,
        high_ns=high,
        maximum_ns=ordered[-1],
    )


def strips_chart(spans: Sequence[tuple[str, int, Sequence[int]]]) -> Strips | None:
    """`spans` are (label, colour number, nanoseconds of each call); None without any call."""
    shown = [one for one in spans if one[2]]
    if not shown:
        return None
    everything = [span for _, _, some in shown for span in some]
    unit, factor = ("ms", 1e6) if max(everything) >= 10e6 else ("\N{MICRO SIGN}s", 1e3)
    low, high = padded(min(everything) / factor, max(everything) / factor, 0.04)
    x = Scale(low=low, high=high, start=LEFT, end=RIGHT)
    return Strips(
        strips=tuple(_strip(place, one, x, factor) for place, one in enumerate(shown)),
        across=x.ticks(),
        height=len(shown) * ROW + FOOT,
        unit=unit,
    )


def _strip(place: int, one: tuple[str, int, Sequence[int]], x: Scale, factor: float) -> Strip:
    label, number, spans = one
    middle, seen = place * ROW + ROW // 2, spread(spans)
    left, right = x(seen.low_ns / factor), x(seen.high_ns / factor)
    return Strip(
        label=label,
        css=series_css(number),
        spread=seen,
        middle=middle,
        ticks="".join(f"M{x(span / factor):.1f} {middle - 6}v12" for span in spans),
        box=(f"{left:.1f}", f"{max(1.0, right - left):.1f}"),
        median=f"{x(seen.median_ns / factor):.1f}",
    )
