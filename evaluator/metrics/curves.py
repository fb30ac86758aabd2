"""What a board keeps of turns: enough for Fast_p and Fast_p^Inst at any p and any turn limit.

A curve holds, for each prompt variant, every correct turn and how many trajectories planned how
many turns. Curves add up: that of many runs is made from theirs without looking at turns again.

Cost  `steps` sorts the n correct turns once, O(n log n); each share at a p is then O(log n).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaluator.metrics.outcomes import TrajectoryOutcome, TurnOutcome
from evaluator.metrics.turns import Band, Triplet, triplet


class CorrectTurn(NamedTuple):
    """A turn whose function was correct; None: no speedup, or no evidence of instructions."""

    number: int
    speedup: float | None
    instructions: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantCurve:
    """One prompt variant. `plans`: ascending (planned turns, how many trajectories)."""

    variant: str
    plans: tuple[tuple[int, int], ...] = ()
    turns: tuple[CorrectTurn, ...] = ()

    def planned(self, at_most: int | None = None) -> int:
        """N of the variant: each trajectory counts at most `at_most` turns."""
        return sum(
            count * (length if at_most is None else min(length, at_most))
            for length, count in self.plans
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Fast_p as a step function of p. `speedups` ascending, of correct turns that have one."""

    planned: int
    correct: int
    speedups: tuple[float, ...]

    @property
    def correctness_rate(self) -> float | None:
        """Share of planned turns that are correct; None where nothing was planned."""
        return self.correct / self.planned if self.planned else None

    @property
    def best_speedup(self) -> float | None:
        return self.speedups[-1] if self.speedups else None

    def fast_p(self, p: float) -> float | None:
        """Share of planned turns that are correct and faster than `p`, strictly."""
        if not self.planned:
            return None
        return (len(self.speedups) - bisect_right(self.speedups, p)) / self.planned

    def points(self) -> list[tuple[float, float]]:
        """(p, share) where the function steps: the share holds from this p to the next.

        Begins at p = 0 and ends at the best speedup with 0; drawn with horizontal-vertical lines.
        """
        if not self.planned:
            return []
        edges = [0.0, *sorted(set(self.speedups))]
        return [(p, self.fast_p(p) or 0.0) for p in edges]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All variants, by name; a sum of curves is a curve."""

    variants: tuple[VariantCurve, ...] = ()

    def steps(
        self,
        *,
        at_most: int | None = None,
        instructions: bool = False,
        variant: str | None = None,
    ) -> Steps:
        """Over all variants together or one alone; with `instructions` only turns that ran them."""
        chosen = [one for one in self.variants if variant is None or one.variant == variant]
        turns = [
            turn
            for one in chosen
            for turn in one.turns
            if (at_most is None or turn.number <= at_most)
            and (turn.instructions is True or not instructions)
        ]
        return Steps(
            planned=sum(one.planned(at_most) for one in chosen),
            correct=len(turns),
            speedups=tuple(sorted(turn.speedup for turn in turns if turn.speedup is not None)),
        )

    def band(
        self, p: float, *, at_most: int | None = None, instructions: bool = False
    ) -> Band | None:
        """Fast_p of each variant alone: mean and range; None where nothing was planned."""
        shares = [
            share
            for one in self.variants
            if (
                share := self.steps(
                    at_most=at_most, instructions=instructions, variant=one.variant
                ).fast_p(p)
            )
            is not None
        ]
        if not shares:
            return None
        return Band(mean=sum(shares) / len(shares), low=min(shares), high=max(shares))

    def band_points(
        self, *, at_most: int | None = None, instructions: bool = False
    ) -> list[tuple[float, Band]]:
        """(p, band) wherever a variant steps; the band holds from this p to the next."""
        steps = [
            found
            for one in self.variants
            if (
                found := self.steps(at_most=at_most, instructions=instructions, variant=one.variant)
            ).planned
        ]
        edges = sorted({0.0, *(speedup for one in steps for speedup in one.speedups)})
        return [(p, _band([one.fast_p(p) or 0.0 for one in steps])) for p in edges if steps]

    def rates(self, *, instructions: bool = False) -> Triplet:
        """Turn correctness rate at <= 1, <= 4, <= 8 turns."""
        return triplet(
            lambda limit: self.steps(at_most=limit, instructions=instructions).correctness_rate
        )

    def bests(self, *, instructions: bool = False) -> Triplet:
        """Best speedup at <= 1, <= 4, <= 8 turns."""
        return triplet(
            lambda limit: self.steps(at_most=limit, instructions=instructions).best_speedup
        )

    def knows_instructions(self) -> bool:
        """False where turns were correct and of none is known what it ran: then no share of
        target turns can be told; it is not 0.
        """
        turns = [turn for one in self.variants for turn in one.turns]
        return not turns or any(turn.instructions is not None for turn in turns)

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"variant": one.variant, "plans": list(one.plans), "turns": list(one.turns)}
            for one in self.variants
        ]


def curve_from_json(value: Sequence[dict[str, Any]]) -> Curve:
    return Curve(
        variants=tuple(
            VariantCurve(
                variant=one["variant"],
                plans=tuple((length, count) for length, count in one["plans"]),
                turns=tuple(CorrectTurn(*turn) for turn in one["turns"]),
            )
            for one in value
        )
    )


def curve_of(trajectories: Iterable[TrajectoryOutcome]) -> Curve:
    """The curve of these trajectories; equal for every order of them."""
    plans: dict[str, Counter[int]] = {}
    turns: dict[str, list[CorrectTurn]] = {}
    for one in trajectories:
        plans.setdefault(one.variant, Counter())[one.planned] += 1
        turns.setdefault(one.variant, []).extend(map(_correct, filter(_is_correct, one.turns)))
    return _curve(plans, turns)


def curve_sum(curves: Iterable[Curve]) -> Curve:
    """As if the trajectories of all had been one list."""
    plans: dict[str, Counter[int]] = {}
    turns: dict[str, list[CorrectTurn]] = {}
    for one in (variant for curve in curves for variant in curve.variants):
        counted = plans.setdefault(one.variant, Counter())
        for length, count in one.plans:
            counted[length] += count
        turns.setdefault(one.variant, []).extend(one.turns)
    return _curve(plans, turns)


def _curve(plans: dict[str, Counter[int]], turns: dict[str, list[CorrectTurn]]) -> Curve:
    return Curve(
        variants=tuple(
            VariantCurve(
                variant=variant,
                plans=tuple(sorted(plans[variant].items())),
                turns=tuple(sorted(turns[variant], key=_order)),
            )
            for variant in sorted(plans)
        )
    )


def _is_correct(turn: TurnOutcome) -> bool:
    return turn.correct


def _correct(turn: TurnOutcome) -> CorrectTurn:
    return CorrectTurn(turn.number, turn.speedup, turn.instructions)


def _order(turn: CorrectTurn) -> tuple[float, int, int]:
    """Ascending speedups, unknown ones first; ties by number, then by what is known."""
    known = -1 if turn.instructions is None else int(turn.instructions)
    return (-1.0 if turn.speedup is None else turn.speedup, turn.number, known)


def _band(values: Sequence[float]) -> Band:
    return Band(mean=sum(values) / len(values), low=min(values), high=max(values))
