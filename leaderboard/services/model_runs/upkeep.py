"""Periodic duties for model runs: ring again, take back lost calls, end what nobody resumes."""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from evaluator.records.worker_api import LEASE_SECONDS
from leaderboard.models import ModelRun, Submission, Trajectory
from leaderboard.services.doorbell import is_due, ring_trajectory
from leaderboard.services.model_runs.bells import next_of
from leaderboard.services.model_runs.claiming import lock_trajectory
from leaderboard.services.model_runs.control import model_run_cancel
from leaderboard.services.model_runs.storing import call_again

log = logging.getLogger(__name__)

RING_AT_MOST = 200
PAUSED_AT_MOST = timedelta(days=7)
LOST_CALL = "the process that made the call ended before it was stored"


def ring_again(now: datetime) -> int:
    """Trajectories that could go on and whose ring is old or was never sent; how many were rung."""
    rung = 0
    for trajectory in _silent(now)[:RING_AT_MOST]:
        if not ring_trajectory(trajectory):
            break
        rung += 1
    return rung


def _silent(now: datetime) -> list[Trajectory]:
    runs = ModelRun.objects.filter(pk__in=Trajectory.objects.due(now).values("run"))
    waiting = [one for run in runs.order_by("created_at") for one in next_of(run, now)]
    evaluated = Trajectory.objects.filter(
        Q(turns__submission__isnull=True) | ~Q(turns__submission__state__in=Submission.OPEN_STATES),
        state=Trajectory.State.EVALUATING,
        turns__closed_at=None,
    )
    return [one for one in (*evaluated, *waiting) if is_due(one, now, soon=True)]


def take_back(now: datetime) -> int:
    """Calls whose process died: they are made again, and nothing else is repeated."""
    return sum(_take_back(str(pk), now) for pk in _lapsed(now))


def _lapsed(now: datetime) -> list[object]:
    return list(Trajectory.objects.lapsed(now).values_list("pk", flat=True))


@transaction.atomic
def _take_back(trajectory_id: str, now: datetime) -> bool:
    trajectory = lock_trajectory(trajectory_id)
    calling = trajectory is not None and trajectory.state == Trajectory.State.CALLING
    if not calling or trajectory.lease_until >= now:
        return False
    log.warning("trajectory %s: %s", trajectory_id, LOST_CALL)
    call_again(trajectory, LOST_CALL, None, retryable=True)
    return True


def spare(now: datetime) -> int:
    """The site was away, so no beat could reach it: every call gets one more term."""
    return Trajectory.objects.lapsed(now).update(lease_until=now + timedelta(seconds=LEASE_SECONDS))


def end_forgotten(now: datetime) -> int:
    """Runs that stayed paused for PAUSED_AT_MOST: a key is not kept for ever."""
    days = PAUSED_AT_MOST.days
    forgotten = ModelRun.objects.filter(
        state=ModelRun.State.PAUSED, paused_at__lt=now - PAUSED_AT_MOST
    )
    runs = list(forgotten)
    for run in runs:
        was = run.reason.rstrip(".")
        model_run_cancel(run=run, user=None, reason=f"Paused for {days} days. It was: {was}.")
    return len(runs)
