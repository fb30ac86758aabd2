"""Which trajectories hear next. A lost ring costs seconds: the reconciler rings again."""

from datetime import datetime

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from leaderboard.models import ModelRun, Submission, Trajectory
from leaderboard.services.doorbell import ring_trajectory


def ring_next(run: ModelRun) -> None:
    """After the commit: as many waiting trajectories as the run has places left."""
    transaction.on_commit(lambda: _ring(next_of(run, timezone.now())), robust=True)


def next_of(run: ModelRun, now: datetime) -> list[Trajectory]:
    """Due trajectories for the free places; those that have begun go first, then in page order."""
    free = run.max_parallel - run.trajectories.active().count()
    if free <= 0:
        return []
    due = Trajectory.objects.due(now).filter(run=run).annotate(taken=Count("turns"))
    return list(due.order_by("-taken", "variant__position", "number")[:free])


def ring_after(submission: Submission) -> None:
    """After the commit: the trajectories that wait for this submission, which has just ended."""
    transaction.on_commit(lambda: _ring(waiting_for(submission)), robust=True)


def waiting_for(submission: Submission) -> list[Trajectory]:
    turns = {"turns__submission": submission, "turns__closed_at": None}
    return list(Trajectory.objects.filter(state=Trajectory.State.EVALUATING, **turns))


def _ring(trajectories: list[Trajectory]) -> None:
    for trajectory in trajectories:
        if not ring_trajectory(trajectory):
            break
