"""The right to make one call: taken by a conditional change under a lease and a fence."""

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from leaderboard.models import ModelRun, Trajectory, Turn
from leaderboard.services.model_runs.bells import free_places
from leaderboard.services.model_runs.budgets import spent, unmetered
from leaderboard.services.model_runs.endings import (
    Ending,
    run_pause,
    run_started,
    trajectory_end,
    trajectory_put,
)

log = logging.getLogger(__name__)

LEASE_SECONDS = 60
BEAT_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One call of one trajectory: its turn number, and which try of that number it is."""

    trajectory: Trajectory
    fence: uuid.UUID
    number: int
    repeat: int


def lock_trajectory(trajectory_id: str) -> Trajectory | None:
    """The trajectory with its run, both rows held, the run's first; None where there is none."""
    try:
        identifier = uuid.UUID(str(trajectory_id))
    except ValueError:
        return None
    run = ModelRun.objects.select_for_update(of=("self",)).filter(trajectories=identifier).first()
    if run is None:
        return None
    rows = Trajectory.objects.select_for_update(of=("self",)).select_related("variant")
    trajectory = rows.get(pk=identifier)
    trajectory.run = run
    return trajectory


@transaction.atomic
def trajectory_claim(trajectory_id: str, now: datetime | None = None) -> Claim | None:
    """The call that is due; None where none is, or none may be made now.

    Ends the trajectory where the run's budget is used up; pauses the run where a limit cannot be
    kept because the endpoint tells no token counts.
    """
    now = now or timezone.now()
    trajectory = lock_trajectory(trajectory_id)
    if trajectory is None or not _may_call(trajectory, now):
        return None
    run = trajectory.run
    if why := spent(run, now):
        trajectory_end(trajectory, Ending.BUDGET, why)
        return None
    if why := unmetered(run, now):
        run_pause(run, why)
        return None
    number, repeat = next_turn(trajectory)
    fence = uuid.uuid4()
    trajectory_put(
        trajectory,
        state=Trajectory.State.CALLING,
        fence=fence,
        lease_until=now + timedelta(seconds=LEASE_SECONDS),
        next_at=None,
        doorbell_at=None,
        doorbell_count=0,
        started_at=trajectory.started_at or now,
    )
    run_started(run)
    return Claim(trajectory=trajectory, fence=fence, number=number, repeat=repeat)


def _may_call(trajectory: Trajectory, now: datetime) -> bool:
    run = trajectory.run
    waits = trajectory.state == Trajectory.State.WAITING and not trajectory.held
    early = trajectory.next_at is not None and trajectory.next_at > now
    if not waits or early or not run.is_going:
        return False
    return free_places(run) > 0


def next_turn(trajectory: Trajectory) -> tuple[int, int]:
    """(number, repeat): after the last turn that counts; a number that was lost is taken again."""
    counted = trajectory.turns.counted().order_by("-number").first()
    number = counted.number + 1 if counted else 1
    return number, trajectory.turns.filter(number=number).count()


def last_counted(trajectory: Trajectory) -> Turn | None:
    return trajectory.turns.counted().filter(~Q(closed_at=None)).order_by("-number").first()


def still_holds(trajectory: Trajectory | None, claim: Claim) -> bool:
    """False for a result that comes too late: cancelled, or the lease was given to another."""
    return trajectory is not None and trajectory.fence == claim.fence


@contextmanager
def kept_alive(claim: Claim) -> Iterator[None]:
    """Lengthens the lease from a thread of its own while a call is under way."""
    over = threading.Event()
    beats = threading.Thread(target=_beat, args=(claim, over), daemon=True)
    beats.start()
    try:
        yield
    finally:
        over.set()
        beats.join()


def _beat(claim: Claim, over: threading.Event) -> None:
    try:
        while not over.wait(BEAT_SECONDS):
            _lengthen(claim)
    finally:
        connection.close()


def _lengthen(claim: Claim) -> None:
    until = timezone.now() + timedelta(seconds=LEASE_SECONDS)
    held = Trajectory.objects.filter(pk=claim.trajectory.pk, fence=claim.fence)
    try:
        held.update(lease_until=until)
    except Exception:  # the next beat may reach the database again
        log.exception("trajectory %s: the lease could not be lengthened", claim.trajectory.pk)
