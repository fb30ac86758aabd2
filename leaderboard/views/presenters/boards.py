"""A board as its page shows it: ranked rows, the baseline's row, one axis for all intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from evaluator.records.problem import Problem
from evaluator.records.verdicts import InstructionStatus, Tier
from evaluator.targets import Target
from leaderboard.models import Evaluation
from leaderboard.services.boards import Baseline
from leaderboard.services.boards import Board as BoardRead
from leaderboard.services.resources import Resources
from leaderboard.views.presenters.words import INSTRUCTIONS, TIERS, Badge

AXIS_WIDTH = 160.0
LOWEST_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Places of a row's point and whisker on the axis, as text for SVG attributes."""

    low: str
    high: str
    point: str
    off_axis: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Speedups on a logarithmic axis that always holds 1, the baseline.

    It starts at LOWEST_SHARE of its end or later, so that leaders stay apart; slower rows are
    drawn as an arrow at its start.
    """

    low: float
    high: float

    def place(self, speedup: float) -> str:
        span = math.log(self.high / self.low)
        return f"{AXIS_WIDTH * math.log(speedup / self.low) / span:.1f}"

    def forest(self, row: Evaluation) -> Forest:
        return Forest(
            low=self.place(max(self.low, row.speedup_low)),
            high=self.place(min(self.high, row.speedup_high)),
            point=self.place(max(self.low, row.speedup)),
            off_axis=row.speedup < self.low,
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
    """`band` is the best and the worst rank that the row's interval allows."""

    rank: int
    band: tuple[int, int]
    evaluation: Evaluation
    flops_per_second: float
    peak_share: float | None
    instructions: Instructions | None
    forest: Forest
    is_mine: bool
    resources: Resources | None

    @property
    def band_text(self) -> str:
        """`1-3` with an en dash; empty where the interval leaves one rank."""
        best, worst = self.band
        return f"{best}\N{EN DASH}{worst}" if best < worst else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    baseline: Baseline
    flops_per_second: float | None
    peak_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    rows: tuple[BoardRow, ...]
    baseline: BaselineRow
    axis: Axis
    row_count: int
    updated_at: datetime | None
    is_cut: bool

    @property
    def entrant_count(self) -> int:
        """Of the rows shown."""
        return len({row.evaluation.submission.entrant_id for row in self.rows})

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == self.row_count


def board(read: BoardRead, *, user_id: int | None) -> Board:
    """The rows and the baseline are the API's; drawing and shares of peak are added here."""
    axis, problem = axis_of(read.rows), read.problem.record
    return Board(
        rows=tuple(
            _row(one, axis, problem, read.target, user_id, read.resources.get(one.job_id))
            for one in read.rows
        ),
        row_count=read.row_count,
        baseline=_baseline_row(read.baseline, problem, read.target),
        axis=axis,
        updated_at=max((one.created_at for one in read.rows), default=None),
        is_cut=read.is_cut,
    )


def _row(
    one: Evaluation,
    axis: Axis,
    problem: Problem,
    target: Target,
    user_id: int | None,
    resources: Resources | None,
) -> BoardRow:
    return BoardRow(
        rank=one.rank,
        band=one.band,
        evaluation=one,
        flops_per_second=problem.flop_count / (one.latency_ns * 1e-9),
        peak_share=peak_share(problem.flop_count, one.latency_ns, target),
        instructions=instructions(one),
        forest=axis.forest(one),
        is_mine=user_id is not None and one.submission.entrant.user_id == user_id,
        resources=resources,
    )


def axis_of(ranked: Sequence[Evaluation]) -> Axis:
    lows = [one.speedup_low for one in ranked if one.speedup_low > 0] or [1.0]
    highs = [one.speedup_high for one in ranked] or [1.0]
    high = max(1.1, max(highs)) * 1.06
    return Axis(low=max(min(0.9, min(lows)) * 0.94, LOWEST_SHARE * high), high=high)


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


def _baseline_row(baseline: Baseline, problem: Problem, target: Target) -> BaselineRow:
    latency_ns = baseline.latency_ns
    return BaselineRow(
        baseline=baseline,
        flops_per_second=problem.flop_count / (latency_ns * 1e-9) if latency_ns else None,
        peak_share=peak_share(problem.flop_count, latency_ns, target) if latency_ns else None,
    )
