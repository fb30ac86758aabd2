"""A turn's second half: what was found of its kernel, what the model is told, and what is next."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from evaluator.agent.extraction import Extraction
from evaluator.agent.feedback import Standing, feedback_of
from evaluator.records.verdicts import Verdict
from leaderboard.models import Evaluation, Submission, Trajectory, Turn
from leaderboard.services.model_runs.bells import ring_next
from leaderboard.services.model_runs.claiming import lock_trajectory
from leaderboard.services.model_runs.endings import Ending, trajectory_end, trajectory_put
from leaderboard.services.standings_update import standing_update

MOST_REPEATS = 2
REPEAT_AFTER_SECONDS = 30
OUTCOME_COLUMNS = (
    "verdict",
    "speedup",
    "instruction_status",
    "evaluation_digest",
    "feedback",
    "excluded",
    "excluded_reason",
    "closed_at",
    "digest",
)


@transaction.atomic
def turn_close(trajectory_id: str) -> Turn | None:
    """The evaluated turn with its feedback; None where nothing is evaluated or it goes on still."""
    trajectory = lock_trajectory(trajectory_id)
    if trajectory is None or trajectory.state != Trajectory.State.EVALUATING:
        return None
    turn = trajectory.turns.select_related("submission__problem").get(closed_at=None)
    submission = turn.submission
    if submission is None or submission.is_open:
        return None
    evaluation = submission.evaluation
    if submission.state == Submission.State.DONE and evaluation is not None:
        _evaluated(turn, evaluation)
        turn_settle(trajectory, turn, None)
    else:
        turn_exclude(trajectory, turn, _why_lost(submission))
    return turn


def _why_lost(submission: Submission) -> str:
    if submission.state == Submission.State.DONE:
        return "the kernel's evaluation was withdrawn"
    return submission.message or f"the evaluation ended {submission.state}"


def _evaluated(turn: Turn, evaluation: Evaluation) -> None:
    turn.verdict = evaluation.verdict
    turn.speedup = evaluation.speedup
    turn.instruction_status = evaluation.instruction_status
    turn.evaluation_digest = evaluation.chain_digest


def turn_settle(trajectory: Trajectory, turn: Turn, extraction: Extraction | None) -> None:
    """Feedback and the next state, inside the caller's transaction."""
    feedback = _feedback(trajectory, turn, extraction)
    if feedback is None:
        turn_exclude(trajectory, turn, "the evaluation has no verdict")
        return
    turn.feedback = feedback
    _finish(turn)
    _go_on(trajectory, turn)


def _feedback(trajectory: Trajectory, turn: Turn, extraction: Extraction | None) -> str | None:
    run = trajectory.run
    standing = Standing(
        turn=turn.number,
        turns=run.turn_count,
        target_speedup=run.target_speedup,
        best_speedup=_best_before(trajectory, turn),
    )
    evaluation = turn.evaluation
    return feedback_of(
        extraction or (evaluation.record.stages if evaluation else ()),
        problem=run.problem.record,
        target=run.target_record,
        standing=standing,
        source=turn.source or "",
    )


def _best_before(trajectory: Trajectory, turn: Turn) -> float | None:
    earlier = trajectory.turns.counted().filter(number__lt=turn.number, speedup__isnull=False)
    return max(earlier.values_list("speedup", flat=True), default=None)


def _finish(turn: Turn) -> None:
    turn.closed_at = timezone.now()
    turn.digest = turn.computed_digest
    turn.save(update_fields=OUTCOME_COLUMNS)
    standing_update(turn.trajectory.run)


def _go_on(trajectory: Trajectory, turn: Turn) -> None:
    run = trajectory.run
    met = turn.verdict == Verdict.PASSED and (turn.speedup or 0.0) >= run.target_speedup
    if met:
        reason = f"speedup {turn.speedup:.3f} in turn {turn.number}, target {run.target_speedup:g}"
        trajectory_end(trajectory, Ending.TARGET_MET, reason)
    elif turn.number >= run.turn_count:
        trajectory_end(trajectory, Ending.TURNS_USED, f"all {run.turn_count} turns were taken")
    else:
        trajectory_put(trajectory, state=Trajectory.State.WAITING, reason="")
        ring_next(run)


def turn_exclude(trajectory: Trajectory, turn: Turn, reason: str) -> None:
    """Lost to infrastructure: the number is taken again, at most MOST_REPEATS times."""
    turn_drop(turn, reason)
    if turn.repeat >= MOST_REPEATS:
        times = turn.repeat + 1
        why = f"turn {turn.number} was lost to our infrastructure {times} times: {reason}"
        trajectory_end(trajectory, Ending.INFRA, why)
        return
    later = timezone.now() + timedelta(seconds=REPEAT_AFTER_SECONDS)
    trajectory_put(trajectory, state=Trajectory.State.WAITING, next_at=later, reason=reason)


def turn_drop(turn: Turn, reason: str) -> None:
    """Out of every denominator, for a reason; the record stays."""
    turn.excluded, turn.excluded_reason = True, reason
    _finish(turn)
