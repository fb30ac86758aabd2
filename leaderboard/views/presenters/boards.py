"""A board as its page shows it: ranked rows, the baseline's row, and a common axis for intervals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from evaluator.records.problem import Problem
from evaluator.records.verdicts import InstructionStatus, Tier
from evaluator.targets import Target
from leaderboard.models import Evaluation
from leaderboard.views.presenters.words import INSTRUCTIONS, TIERS, Badge

AXIS_WIDTH = 176.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Places of a row's point and whisker on the axis, as text for SVG attributes."""

    low: str
    high: str
    point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Speedups on a logarithmic axis that always holds 1, the baseline."""

    low: float
    high: float

    def place(self, speedup: float) -> str:
        span = math.log(self.high / self.low)
        return f"{AXIS_WIDTH * math.log(speedup / self.low) / span:.1f}"

    def forest(self, row: Evaluation) -> Forest:
        return Forest(
            low=self.place(max(self.low, row.speedup_low)),
            high=self.place(min(self.high, row.speedup_high)),
            point=self.place(row.speedup),
        )

    @property
    def one(self) -> str:
        return self.place(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """Target instructions of one evaluation; None shares carry their reason."""

    badge: Badge
    reason: str
    tier: str
    tier_title: str
    work_share: float | None
    work_share_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    rank: int
    evaluation: Evaluation
    flops_per_second: float
    peak_share: float | None
    instructions: Instructions | None
    forest: Forest
    is_mine: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """Measured beside each kernel; the latency shown is the median over the board's rows."""

    name: str
    version: str
    latency_ns: float
    latency_low_ns: float
    latency_high_ns: float
    flops_per_second: float
    peak_share: float | None
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    rows: tuple[BoardRow, ...]
    baseline: BaselineRow | None
    axis: Axis
    updated_at: datetime | None

    @property
    def entrant_count(self) -> int:
        return len({row.evaluation.submission.entrant_id for row in self.rows})


def board(
    evaluations: Iterable[Evaluation], *, problem: Problem, target: Target, user_id: int | None
) -> Board:
    """`evaluations` come ranked, from `Evaluation.objects.for_board`."""
    ranked = list(evaluations)
    axis = axis_of(ranked)
    rows = tuple(
        BoardRow(
            rank=one.rank,
            evaluation=one,
            flops_per_second=problem.flop_count / (one.latency_ns * 1e-9),
            peak_share=peak_share(problem.flop_count, one.latency_ns, target),
            instructions=instructions(one),
            forest=axis.forest(one),
            is_mine=user_id is not None and one.submission.entrant.user_id == user_id,
        )
        for one in ranked
    )
    return Board(
        rows=rows,
        baseline=baseline_row(ranked, problem, target),
        axis=axis,
        updated_at=max((one.created_at for one in ranked), default=None),
    )


def axis_of(ranked: Sequence[Evaluation]) -> Axis:
    lows = [one.speedup_low for one in ranked if one.speedup_low > 0] or [1.0]
    highs = [one.speedup_high for one in ranked] or [1.0]
    return Axis(low=min(0.9, min(lows)) * 0.94, high=max(1.1, max(highs)) * 1.06)


def peak_share(flop_count: int, latency_ns: float, target: Target) -> float | None:
    if target.peak_flops is None:
        return None
    return flop_count / (latency_ns * 1e-9) / target.peak_flops


def instructions(evaluation: Evaluation) -> Instructions | None:
    """None on a target that has no target instructions."""
    if not evaluation.instruction_status:
        return None
    tier = Tier(evaluation.instruction_tier) if evaluation.instruction_tier else None
    return Instructions(
        badge=INSTRUCTIONS[InstructionStatus(evaluation.instruction_status)],
        reason=evaluation.instruction_reason,
        tier=tier.value if tier else "",
        tier_title=TIERS[tier] if tier else "",
        work_share=evaluation.work_share,
        work_share_reason=evaluation.work_share_reason or "not derived",
    )


def baseline_row(
    ranked: Sequence[Evaluation], problem: Problem, target: Target
) -> BaselineRow | None:
    if not ranked:
        return None
    newest = max(ranked, key=lambda one: one.created_at)
    latencies_ns = [one.baseline_latency_ns for one in ranked]
    latency_ns = median(latencies_ns)
    return BaselineRow(
        name=newest.baseline_name or problem.baseline.name,
        version=newest.baseline_version,
        latency_ns=latency_ns,
        latency_low_ns=min(latencies_ns),
        latency_high_ns=max(latencies_ns),
        flops_per_second=problem.flop_count / (latency_ns * 1e-9),
        peak_share=peak_share(problem.flop_count, latency_ns, target),
        row_count=len(ranked),
    )
