"""Which trajectories hear next. A lost ring costs seconds: the reconciler rings again."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from leaderboard.models import ModelRun, Submission, Trajectory
from leaderboard.services.doorbell import ring_trajectory


def ring_next(run: ModelRun) -> None:
    """After the commit: as many waiting trajectories as there are places left.

    Those of the run first, then those of its owner's other runs, the oldest run first.
    """
    transaction.on_commit(lambda: _ring(_next_of_owner(run, timezone.now())), robust=True)


def _next_of_owner(run: ModelRun, now: datetime) -> list[Trajectory]:
    found = next_of(run, now)
    others = ModelRun.objects.filter(
        owner=run.owner_id, trajectories__in=Trajectory.objects.due(now)
    )
    for other in others.exclude(pk=run.pk).distinct().order_by("created_at"):
        if len(found) >= free_places_of_owner(run.owner_id):
            break
        found += next_of(other, now)
    return found


def free_places(run: ModelRun) -> int:
    """How many more of the run's trajectories may be active: by its own plan and its owner's share.

    Without the share, one user's slow endpoint would hold every thread that calls models, and his
    kernels would stand in front of everybody else's. Claims of the same instant may pass it by one.
    """
    of_run = run.max_parallel - run.trajectories.active().count()
    return min(of_run, free_places_of_owner(run.owner_id))


def free_places_of_owner(owner_id: int) -> int:
    active = Trajectory.objects.active().filter(run__owner=owner_id).count()
    return int(settings.PTXBOARD_PARALLEL_LIMIT) - active


def next_of(run: ModelRun, now: datetime) -> list[Trajectory]:
    """Due trajectories for the free places; those that have begun go first, then in page order."""
    free = free_places(run)
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
