"""A run's numbers: its turns as outcomes, and the paper's metrics over them."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from evaluator.metrics.outcomes import TrajectoryOutcome, TurnOutcome, planned_turns
from evaluator.metrics.turns import (
    THRESHOLDS,
    best_speedup,
    correctness_rate,
    fast_p,
    over_variants,
    triplet,
)
from evaluator.records.verdicts import InstructionStatus, Verdict
from leaderboard.models import Evaluation, ModelRun, Trajectory, Turn

FUNCTION_IS_CORRECT = (Verdict.PASSED, Verdict.INCONCLUSIVE)
KNOWN_INSTRUCTIONS = {
    InstructionStatus.EXECUTED: True,
    InstructionStatus.ABSENT: False,
    InstructionStatus.NOT_EXECUTED: False,
}


def outcomes_of(run: ModelRun, *, so_far: bool = False) -> list[TrajectoryOutcome]:
    """In page order; verdicts as they stand today, so a withdrawn evaluation is no success.

    `so_far`: a trajectory that goes on has planned what it has taken, so that turns still to come
    count for nothing yet.
    """
    found = _evaluations(run)
    turns: dict[Any, list[TurnOutcome]] = {}
    for turn in Turn.objects.filter(trajectory__run=run).counted().for_grid().order_by("number"):
        if turn.is_closed:
            outcome = _outcome(turn, found.get(turn.submission_id))
            turns.setdefault(turn.trajectory_id, []).append(outcome)
    rows = run.trajectories.select_related("variant").defer("variant__packed_messages").in_order()
    return [_trajectory(run, row, turns.get(row.pk, []), so_far) for row in rows]


def _evaluations(run: ModelRun) -> dict[Any, Evaluation]:
    rows = Evaluation.objects.valid().filter(submission__turns__trajectory__run=run)
    wanted = rows.only("submission_id", "verdict", "speedup", "instruction_status").distinct()
    return {row.submission_id: row for row in wanted}


def _outcome(turn: Turn, evaluation: Evaluation | None) -> TurnOutcome:
    """A kernel whose time stayed inconclusive is correct, and no speedup is known of it.

    A turn without a kernel here has what its own record says: "" of ours, a verdict where the run
    was reported by somebody else.
    """
    if evaluation is None and turn.submission_id:
        return TurnOutcome(number=turn.number, correct=False)
    said = evaluation or turn
    status = said.instruction_status
    return TurnOutcome(
        number=turn.number,
        correct=said.verdict in FUNCTION_IS_CORRECT,
        speedup=said.speedup,
        instructions=KNOWN_INSTRUCTIONS.get(InstructionStatus(status)) if status else None,
    )


def _trajectory(
    run: ModelRun, trajectory: Trajectory, turns: list[TurnOutcome], so_far: bool
) -> TrajectoryOutcome:
    lost = trajectory.ending == Trajectory.Ending.INFRA
    short = lost or (so_far and trajectory.is_open)
    planned = len(turns) if short else run.turn_count
    return TrajectoryOutcome(variant=trajectory.variant.slug, planned=planned, turns=tuple(turns))


def run_metrics(run: ModelRun) -> dict[str, Any]:
    """Shares are fractions of the planned turns; None: nothing planned, or nothing known.

    `final` is False while the run is open: turns still to come count as not correct until then.
    """
    found = outcomes_of(run)
    has_families = bool(run.target_record.families)
    return {
        "final": run.state == ModelRun.State.DONE,
        "planned_turns": planned_turns(found),
        "taken_turns": sum(len(one.turns) for one in found),
        "any": _family(found, instructions=False),
        "target_instructions": _family(found, instructions=True) if has_families else None,
    }


def _family(found: list[TrajectoryOutcome], *, instructions: bool) -> dict[str, Any]:
    def rate(at_most: int) -> float | None:
        return correctness_rate(found, at_most=at_most, instructions=instructions)

    def best(at_most: int) -> float | None:
        return best_speedup(found, at_most=at_most, instructions=instructions)

    return {
        "correctness_rate": asdict(triplet(rate)),
        "best_speedup": asdict(triplet(best)),
        "fast_p": [_threshold(found, p, instructions) for p in THRESHOLDS],
    }


def _threshold(found: list[TrajectoryOutcome], p: float, instructions: bool) -> dict[str, Any]:
    band = over_variants(found, lambda some: fast_p(some, p, instructions=instructions))
    return {
        "p": p,
        "value": fast_p(found, p, instructions=instructions),
        "over_variants": asdict(band) if band else None,
    }


def turn_counts(run: ModelRun) -> dict[str, int]:
    """How many turns stand how: a verdict, why an answer held no kernel, EVALUATING, EXCLUDED."""
    turns = Turn.objects.filter(trajectory__run=run).for_grid()
    return dict(Counter(state_of(turn) for turn in turns))


def state_of(turn: Turn) -> str:
    """One word for a tile."""
    if turn.excluded:
        return "EXCLUDED"
    if not turn.is_closed:
        return "EVALUATING"
    return turn.verdict or turn.extraction_state
