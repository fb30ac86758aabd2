"""Boards and turns as rows of plain values, for CSV; text like a formula is disarmed."""

from leaderboard.models import Turn
from leaderboard.views.presenters.boards import BoardRow

BOARD_COLUMNS = (
    "rank",
    "best_rank",
    "worst_rank",
    "submission",
    "kernel",
    "entrant",
    "problem",
    "target",
    "speedup",
    "speedup_low",
    "speedup_high",
    "sample_count",
    "latency_ns",
    "baseline_latency_ns",
    "baseline",
    "baseline_version",
    "noise",
    "flops_per_second",
    "peak_share",
    "instruction_status",
    "instruction_tier",
    "work_share",
    "registers",
    "shared_bytes",
    "trust",
    "scoring_version",
    "submitted_at",
)
TURN_COLUMNS = (
    "variant",
    "trajectory",
    "turn",
    "repeat",
    "excluded",
    "excluded_reason",
    "extraction_state",
    "verdict",
    "speedup",
    "instruction_status",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "cost_usd",
    "finish_reason",
    "submission",
    "shared",
    "called_at",
    "replied_at",
    "closed_at",
    "request_digest",
    "call_digest",
    "digest",
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def board_cells(row: BoardRow, problem: str, target: str) -> tuple[object, ...]:
    """One value a column, full precision; an unknown value is empty."""
    one = row.evaluation
    built = row.resources
    return (
        row.rank,
        *row.band,
        str(one.submission_id),
        one.submission.name,
        one.submission.entrant.display_name,
        problem,
        target,
        one.speedup,
        one.speedup_low,
        one.speedup_high,
        one.sample_count,
        one.latency_ns,
        one.baseline_latency_ns,
        one.baseline_name,
        one.baseline_version,
        one.noise,
        row.flops_per_second,
        row.peak_share,
        one.instruction_status,
        one.instruction_tier,
        one.work_share,
        built.registers if built else None,
        built.shared_bytes if built else None,
        one.trust,
        one.scoring_version,
        one.submission.created_at.isoformat(),
    )


def turn_cells(turn: Turn) -> tuple[object, ...]:
    """One value a column; an unknown value is empty."""
    trajectory = turn.trajectory
    return (
        trajectory.variant.slug,
        trajectory.number,
        turn.number,
        turn.repeat,
        turn.excluded,
        turn.excluded_reason,
        turn.extraction_state,
        turn.verdict,
        turn.speedup,
        turn.instruction_status,
        turn.prompt_tokens,
        turn.completion_tokens,
        turn.reasoning_tokens,
        turn.cached_tokens,
        turn.cost_usd,
        turn.finish_reason,
        str(turn.submission_id or ""),
        turn.is_shared,
        turn.called_at.isoformat(),
        turn.replied_at.isoformat(),
        turn.closed_at.isoformat() if turn.closed_at else None,
        turn.request_digest,
        turn.call_digest,
        turn.digest,
    )


def spreadsheet_safe(cell: object) -> object:
    """A quote before text that a spreadsheet would take for a formula."""
    if isinstance(cell, str) and cell.lstrip().startswith(FORMULA_STARTS):
        return f"'{cell}"
    return "" if cell is None else cell
