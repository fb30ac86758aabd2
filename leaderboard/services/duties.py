"""Periodic duties: ring again what nobody heard, and end what nobody keeps alive."""

import logging
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from evaluator.records.worker_api import LEASE_SECONDS
from leaderboard.models import Attempt, DutyRun, Worker
from leaderboard.services.attempts import lock_submission
from leaderboard.services.completion import again_or_fault, attempt_end
from leaderboard.services.doorbell import is_due, ring
from leaderboard.services.model_runs import upkeep

log = logging.getLogger(__name__)

AWAY_SECONDS = 30
RING_AT_MOST = 200
RING_SOON = 20


def reconcile(now: datetime | None = None) -> int:
    """Ring for what waits and whose message is old or was never sent; how many were rung.

    Where a worker could take an attempt now, its lane's and target's oldest RING_SOON are rung
    every minute, so that a broker which lost everything is whole again soon; the others, and those
    without a worker, wait ever longer.
    """
    now = now or timezone.now()
    waiting = Attempt.objects.due(now).order_by("created_at", "id")
    rung = 0
    for attempt in _to_ring(waiting, now)[:RING_AT_MOST]:
        if not ring(attempt):
            break
        rung += 1
    return rung + upkeep.ring_again(now)


def _to_ring(waiting: Iterable[Attempt], now: datetime) -> list[Attempt]:
    online = list(Worker.objects.online(now))
    places: Counter[tuple[str, str]] = Counter()
    due = []
    for attempt in waiting:
        queue = (attempt.lane, attempt.target)
        places[queue] += 1
        soon = places[queue] <= RING_SOON and any(worker.can_run(*queue) for worker in online)
        if is_due(attempt, now, soon=soon):
            due.append(attempt)
    return due


def reap(now: datetime | None = None) -> int:
    """End attempts and calls whose lease lapsed; how many were ended.

    Where this duty itself did not run for a while the site was away and heartbeats could not
    reach it: every live lease gets one more term first.
    """
    now = now or timezone.now()
    if _was_away(now):
        spared = Attempt.objects.lapsed(now).update(
            lease_until=now + timedelta(seconds=LEASE_SECONDS)
        )
        spared += upkeep.spare(now)
        log.warning("the site was away; %d leases got another term", spared)
        return 0
    upkeep.end_forgotten(now)
    ended = sum(_expire(attempt, now) for attempt in Attempt.objects.lapsed(now))
    return ended + upkeep.take_back(now)


def _was_away(now: datetime) -> bool:
    last = DutyRun.objects.filter(name="reap").first()
    DutyRun.objects.update_or_create(name="reap", defaults={"ran_at": now})
    return last is not None and last.ran_at < now - timedelta(seconds=AWAY_SECONDS)


@transaction.atomic
def _expire(lapsed: Attempt, now: datetime) -> bool:
    lock_submission(lapsed)
    attempt = (
        Attempt.objects.select_for_update(of=("self",))
        .select_related("job__submission")
        .filter(pk=lapsed.pk, state=Attempt.State.RUNNING, lease_until__lt=now)
        .first()
    )
    if attempt is None:
        return False
    stage = f" during {attempt.current_stage}" if attempt.current_stage else ""
    message = f"the worker stopped answering{stage}"
    log.warning("attempt %s on %s: %s", attempt.pk, attempt.worker, message)
    attempt_end(attempt, Attempt.State.EXPIRED, message)
    again_or_fault(attempt)
    return True
