"""Ringing: one small message for an attempt. Losing it costs seconds, doubling it nothing."""

import logging
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError

from evaluator.broker import BUILD_QUEUE, EVALUATE_TASK
from evaluator.targets import TARGETS
from leaderboard.models import Attempt, Job
from webapp.celery import app

log = logging.getLogger(__name__)

FIRST_AGAIN_SECONDS = 30
LAST_AGAIN_SECONDS = 600
SOON_AGAIN_SECONDS = 60


def queue_of(attempt: Attempt) -> str:
    return BUILD_QUEUE if attempt.lane == Job.Lane.BUILD else TARGETS[attempt.target].queue


def ring(attempt: Attempt) -> bool:
    """Send the message; False when the broker is away, and then the reconciler rings later."""
    try:
        app.send_task(EVALUATE_TASK, args=[str(attempt.pk)], queue=queue_of(attempt), retry=False)
    except (OperationalError, OSError) as error:
        log.warning("attempt %s: the broker does not take messages: %s", attempt.pk, error)
        return False
    Attempt.objects.filter(pk=attempt.pk).update(
        doorbell_at=timezone.now(), doorbell_count=F("doorbell_count") + 1
    )
    return True


def is_due(attempt: Attempt, now: datetime, *, soon: bool = False) -> bool:
    """30 s after the first ring, then twice as long each time up to 10 minutes; `soon`: to 1.

    A target without workers must not fill its queue with thousands of messages; where a worker is
    there (`soon`), a message that the broker lost must not cost ten minutes.
    """
    if attempt.doorbell_at is None or attempt.doorbell_at > now:  # the clock was set back
        return True
    doublings = min(max(attempt.doorbell_count - 1, 0), 10)
    longest = SOON_AGAIN_SECONDS if soon else LAST_AGAIN_SECONDS
    seconds = min(FIRST_AGAIN_SECONDS * 2**doublings, longest)
    return attempt.doorbell_at <= now - timedelta(seconds=seconds)
