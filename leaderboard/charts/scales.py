"""Places on a drawing: numbers to coordinates, round ticks, and paths of steps."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`low` to `high` in data becomes `start` to `end` on the canvas; outside is cut off."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            share = (inside - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> tuple["Tick", ...]:
        values = decades(self.low, self.high) if self.log else round_values(self.low, self.high)
        return tuple(Tick(at=f"{self(value):.1f}", text=f"{value:g}") for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on an axis as text for an SVG attribute."""

    at: str
    text: str


def round_values(low: float, high: float, wanted: int = 5) -> tuple[float, ...]:
    """About `wanted` round values inside the range."""
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return tuple(round(n * step, 6) for n in range(first, math.floor(high / step + 1e-9) + 1))


def decades(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 times the powers of ten inside the range; fewer where there would be many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 3 else (1,)
    found = (factor * 10.0**power for power in powers for factor in factors)
    return tuple(value for value in found if low <= value <= high)


def padded(low: float, high: float, share: float = 0.08) -> tuple[float, float]:
    """The range with some air; never empty, never below zero."""
    margin = (high - low) * share or max(abs(high) * 0.05, 0.5)
    return max(0.0, low - margin), high + margin


def step_path(points: Iterable[tuple[float, float]]) -> str:
    """An SVG path that stays at each height until the next point: a step function.

    Relative commands with whole numbers keep a page of curves light; the pen's true place is
    tracked, so rounding never adds up.
    """
    parts, x, y = [], 0, 0
    for across, down in points:
        new_x, new_y = round(across), round(down)
        if not parts:
            parts.append(f"M{new_x} {new_y}")
        else:
            parts += [f"h{new_x - x}"] if new_x != x else []
            parts += [f"v{new_y - y}"] if new_y != y else []
        x, y = new_x, new_y
    return "".join(parts)
