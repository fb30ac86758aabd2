"""How trajectories and runs end or are paused; a run that ends gives its key up."""

from django.db.models import F
from django.utils import timezone

from leaderboard.models import ModelRun, Trajectory
from leaderboard.services.audit import audit_append
from leaderboard.services.model_runs.bells import ring_next
from leaderboard.services.standings_update import standing_update

Ending = Trajectory.Ending
NO_CALL = {"fence": None, "lease_until": None}


def trajectory_end(trajectory: Trajectory, ending: str, reason: str) -> None:
    """Inside the caller's transaction, which holds the run's row; the last one ends the run."""
    trajectory_close(trajectory, ending, reason)
    run_settle(trajectory.run)


def trajectory_close(trajectory: Trajectory, ending: str, reason: str) -> None:
    done = ending in Trajectory.BY_THEMSELVES
    trajectory_put(
        trajectory,
        state=Trajectory.State.DONE if done else Trajectory.State.STOPPED,
        ending=ending,
        reason=reason,
        ended_at=timezone.now(),
        next_at=None,
        held=False,
        **NO_CALL,
    )
    standing_update(trajectory.run)


def trajectory_put(trajectory: Trajectory, **columns: object) -> None:
    for name, value in columns.items():
        setattr(trajectory, name, value)
    trajectory.save(update_fields=list(columns))


def run_settle(run: ModelRun) -> None:
    """The run's end where no trajectory is open any more; else the next ones hear of the place."""
    if run.trajectories.open().exists():
        ring_next(run)
        return
    endings = set(run.trajectories.values_list("ending", flat=True))
    if endings == {Ending.CANCELLED}:
        run_close(run, ModelRun.State.CANCELLED, "every trajectory was cancelled")
    elif endings == {Ending.INFRA}:
        reason = "every trajectory was lost to our infrastructure, which says nothing of the model"
        run_close(run, ModelRun.State.FAULTED, reason)
    else:
        run_close(run, ModelRun.State.DONE, "")


def run_close(run: ModelRun, state: str, reason: str) -> None:
    """The run is over, and nothing of its key is kept."""
    now = timezone.now()
    run.state, run.reason, run.ended_at = state, reason, now
    run.key_ciphertext, run.key_deleted_at = "", now
    run.save(update_fields=["state", "reason", "ended_at", "key_ciphertext", "key_deleted_at"])
    standing_update(run)
    audit_append(
        actor="site", action="model-run.ended", subject=run.pk, detail={"state": str(state)}
    )


def run_pause(run: ModelRun, reason: str) -> None:
    """No further call is made; what is under way ends and is kept. Pausing twice is like once."""
    if not run.is_going:
        return
    run.state, run.reason, run.paused_at = ModelRun.State.PAUSED, reason, timezone.now()
    run.save(update_fields=["state", "reason", "paused_at"])


def run_unpause(run: ModelRun) -> None:
    """It goes on where it was; the time of the pause counts against no budget."""
    now = timezone.now()
    if run.started_at and run.paused_at:
        run.held_seconds += (now - run.paused_at).total_seconds()
    run.state = ModelRun.State.RUNNING if run.started_at else ModelRun.State.QUEUED
    run.reason, run.paused_at = "", None
    run.save(update_fields=["state", "reason", "paused_at", "held_seconds"])
    run.trajectories.open().update(failures=0, next_at=None)
    ring_next(run)


def run_started(run: ModelRun) -> None:
    if run.state == ModelRun.State.QUEUED:
        run.state = ModelRun.State.RUNNING
        run.started_at = run.started_at or timezone.now()
        run.save(update_fields=["state", "started_at"])


def count_failure(trajectory: Trajectory) -> int:
    Trajectory.objects.filter(pk=trajectory.pk).update(failures=F("failures") + 1)
    trajectory.refresh_from_db(fields=["failures"])
    return trajectory.failures
