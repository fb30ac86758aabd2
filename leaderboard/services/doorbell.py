"""Ringing: one small message for what waits. Losing it costs seconds, doubling it nothing."""

import logging
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError

from evaluator.broker import ADVANCE_TASK, BUILD_QUEUE, EVALUATE_TASK, MODELS_QUEUE
from evaluator.targets import TARGETS
from leaderboard.models import Attempt, Job, Trajectory
from webapp.celery import app

log = logging.getLogger(__name__)

FIRST_AGAIN_SECONDS = 30
LAST_AGAIN_SECONDS = 600
SOON_AGAIN_SECONDS = 60


def queue_of(attempt: Attempt) -> str:
    return BUILD_QUEUE if attempt.lane == Job.Lane.BUILD else TARGETS[attempt.target].queue


def ring(attempt: Attempt) -> bool:
    """Send the message; False when the broker is away, and then the reconciler rings later."""
    return _send(EVALUATE_TASK, attempt, queue_of(attempt))


def ring_trajectory(trajectory: Trajectory) -> bool:
    """Ask for the next step of a model's trajectory; False when the broker is away."""
    return _send(ADVANCE_TASK, trajectory, MODELS_QUEUE)


def _send(task: str, rung: Attempt | Trajectory, queue: str) -> bool:
    try:
        app.send_task(task, args=[str(rung.pk)], queue=queue, retry=False)
    except (OperationalError, OSError) as error:
        log.warning("%s %s: the broker does not take messages: %s", task, rung.pk, error)
        return False
    type(rung).objects.filter(pk=rung.pk).update(
        doorbell_at=timezone.now(), doorbell_count=F("doorbell_count") + 1
    )
    return True


def is_due(rung: Attempt | Trajectory, now: datetime, *, soon: bool = False) -> bool:
    """30 s after the first ring, then twice as long each time up to 10 minutes; `soon`: to 1.

    A target without workers must not fill its queue with thousands of messages; where a worker is
    there (`soon`), a message that the broker lost must not cost ten minutes.
    """
    if rung.doorbell_at is None or rung.doorbell_at > now:  # the clock was set back
        return True
    doublings = min(max(rung.doorbell_count - 1, 0), 10)
    longest = SOON_AGAIN_SECONDS if soon else LAST_AGAIN_SECONDS
    seconds = min(FIRST_AGAIN_SECONDS * 2**doublings, longest)
    return rung.doorbell_at <= now - timedelta(seconds=seconds)
