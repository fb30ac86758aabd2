"""A board as rows of plain values, for CSV; text that begins like a formula is disarmed."""

from leaderboard.views.presenters.boards import BoardRow

BOARD_COLUMNS = (
    "rank",
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
    "trust",
    "scoring_version",
    "submitted_at",
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def board_cells(row: BoardRow, problem: str, target: str) -> tuple[object, ...]:
    """One value a column, full precision; an unknown value is empty."""
    one = row.evaluation
    return (
        row.rank,
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
        one.trust,
        one.scoring_version,
        one.submission.created_at.isoformat(),
    )


def spreadsheet_safe(cell: object) -> object:
    """A quote before text that a spreadsheet would take for a formula."""
    if isinstance(cell, str) and cell.lstrip().startswith(FORMULA_STARTS):
        return f"'{cell}"
    return "" if cell is None else cell
