"""What an open submission waits for: its place in the queue and who could take it."""

import math
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from leaderboard.models import Attempt, Job, Submission
from leaderboard.services.workers import workers_able


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReport:
    lane: str
    position: int
    workers_online: int
    note: str
    not_before: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "not_before": self.not_before and self.not_before.isoformat()}


def queue_report(*, submission: Submission) -> QueueReport | None:
    """None unless an attempt of the submission is queued; `not_before` while it is delayed."""
    if not submission.is_open:
        return None
    attempt = Attempt.objects.queued().filter(job__submission=submission).first()
    if attempt is None:
        return None
    before = Attempt.objects.queued().filter(lane=attempt.lane, created_at__lt=attempt.created_at)
    if attempt.lane == Job.Lane.GPU:
        before = before.filter(target=attempt.target)
    able = workers_able(lane=attempt.lane, target=attempt.target)
    position = before.count() + 1
    now = timezone.now()
    delayed = not attempt.is_due(now)
    note = _delay_note(attempt, now) if delayed else _note(attempt, able, submission)
    return QueueReport(
        lane=attempt.lane,
        position=position,
        workers_online=able,
        note=note,
        not_before=attempt.not_before if delayed else None,
    )


def _delay_note(attempt: Attempt, now: datetime) -> str:
    seconds = math.ceil((attempt.not_before - now).total_seconds()) if attempt.not_before else 0
    return (
        f"our {attempt.lane} worker {attempt.avoided} failed, which is no fault of the kernel; "
        f"the next attempt may start in {seconds} s, on another worker first if one is online"
    )


def _note(attempt: Attempt, able: int, submission: Submission) -> str:
    if able:
        return "1 worker can run this" if able == 1 else f"{able} workers can run this"
    if attempt.lane == Job.Lane.BUILD:
        return "no build worker is online; the build starts as soon as one connects"
    target = submission.target_record
    where = "" if target.runs_here else f"; {target.note}"
    title = target.title.removeprefix("NVIDIA ")
    return f"no {title} worker is online; the kernel is built and waits{where}"
