"""One try of a job's lane on one worker, held by a lease and a fence."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from leaderboard.models.job import Job
from leaderboard.models.submission import TARGET_SLUGS


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def queued(self) -> "AttemptQuerySet":
        return self.filter(state=Attempt.State.QUEUED)

    def due(self, now: datetime) -> "AttemptQuerySet":
        """Queued and not waiting for the delay after a fault to end."""
        return self.queued().filter(Q(not_before=None) | Q(not_before__lte=now))

    def lapsed(self, now: datetime) -> "AttemptQuerySet":
        return self.filter(state=Attempt.State.RUNNING, lease_until__lt=now)

    def runnable_by(self, lanes: list[str], targets: list[str], now: datetime) -> "AttemptQuerySet":
        """Due attempts that a worker with these lanes and targets can run, oldest first."""
        fitting = self.due(now).filter(lane__in=lanes, target__in=targets)
        return fitting.order_by("created_at", "id")


class Attempt(models.Model):
    """`target` repeats the submission's, so that a claim and a queue position need no join.

    fence        secret of the one claim; a write with another is refused
    lease_until  after this moment the reaper may end the attempt
    not_before   nobody may claim it earlier: the attempt before faulted on our side
    avoided      the worker of that attempt, which lets others go first until `avoided_until`
    doorbell_at  when a message was last sent; None where none could be sent yet
    """

    class State(models.TextChoices):
        QUEUED = "QUEUED"
        RUNNING = "RUNNING"
        FINISHED = "FINISHED"
        FAULTED = "FAULTED"
        EXPIRED = "EXPIRED"
        RELEASED = "RELEASED"
        CANCELLED = "CANCELLED"

    OPEN_STATES = (State.QUEUED, State.RUNNING)
    OUR_FAULTS = (State.FAULTED, State.EXPIRED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    lane = models.CharField(max_length=10, choices=Job.Lane)
    target = models.CharField(max_length=20, choices=TARGET_SLUGS)
    number = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    fence = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=100, blank=True)
    current_stage = models.CharField(max_length=20, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    avoided = models.CharField(max_length=100, blank=True)
    avoided_until = models.DateTimeField(null=True, blank=True)
    doorbell_at = models.DateTimeField(null=True, blank=True)
    doorbell_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    message = models.TextField(blank=True)
    environment = models.JSONField(null=True, blank=True)

    objects = AttemptQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["job", "lane", "number"], name="attempt_number_is_unique"
            ),
            models.UniqueConstraint(
                fields=["job"],
                condition=Q(state__in=["QUEUED", "RUNNING"]),
                name="attempt_is_the_only_open_one",
            ),
            models.CheckConstraint(
                condition=~Q(state="RUNNING")
                | Q(fence__isnull=False, lease_until__isnull=False, claimed_at__isnull=False),
                name="attempt_runs_with_a_fence_and_a_lease",
            ),
        ]
        indexes = [
            # claim of the oldest, queue position, age of the oldest queued
            models.Index(
                fields=["lane", "target", "created_at"],
                condition=Q(state="QUEUED"),
                name="attempt_queue",
            ),
            # reaper: expired leases
            models.Index(
                fields=["lease_until"], condition=Q(state="RUNNING"), name="attempt_leases"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane} attempt {self.number} ({self.state})"

    def is_due(self, now: datetime) -> bool:
        return self.not_before is None or self.not_before <= now

    def avoids(self, worker: str, now: datetime) -> bool:
        return (
            self.avoided == worker and self.avoided_until is not None and now < self.avoided_until
        )

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN_STATES
