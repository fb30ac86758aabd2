"""Workers as they reported themselves, and when the site's own periodic duties last ran."""

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone

ONLINE_SECONDS = 60


class WorkerQuerySet(models.QuerySet["Worker"]):
    def online(self, now: datetime | None = None) -> "WorkerQuerySet":
        now = now or timezone.now()
        return self.filter(last_seen__gte=now - timedelta(seconds=ONLINE_SECONDS))


class Worker(models.Model):
    """`state` is the worker's own word; whether it is online follows from `last_seen`."""

    class State(models.TextChoices):
        IDLE = "idle"
        BUSY = "busy"
        UNFIT = "unfit"

    name = models.CharField(max_length=100, unique=True)
    token_name = models.CharField(max_length=100)
    lanes = models.JSONField(default=list)
    targets = models.JSONField(default=list)
    state = models.CharField(max_length=10, choices=State, default=State.IDLE)
    note = models.TextField(blank=True)
    environment = models.JSONField(null=True, blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()

    objects = WorkerQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def is_online(self, now: datetime) -> bool:
        return self.last_seen >= now - timedelta(seconds=ONLINE_SECONDS)

    def can_run(self, lane: str, target: str) -> bool:
        return self.state != self.State.UNFIT and lane in self.lanes and target in self.targets


class DutyRun(models.Model):
    """When `reap` and `reconcile` last ran: a gap means that the site itself was away."""

    name = models.CharField(max_length=30, primary_key=True)
    ran_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.ran_at:%Y-%m-%d %H:%M:%S}"
