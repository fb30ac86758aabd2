"""One conversation of a run, moved on by one call at a time."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q
from django.urls import reverse

from leaderboard.models.model_run import ModelRun, RunVariant


class TrajectoryQuerySet(models.QuerySet["Trajectory"]):
    def open(self) -> "TrajectoryQuerySet":
        return self.filter(state__in=Trajectory.OPEN_STATES)

    def active(self) -> "TrajectoryQuerySet":
        """Those that hold one of their run's `max_parallel` places."""
        return self.filter(state__in=Trajectory.ACTIVE_STATES)

    def due(self, now: datetime) -> "TrajectoryQuerySet":
        """Waiting for their next call, and nothing tells them to wait longer."""
        waiting = self.filter(
            state=Trajectory.State.WAITING, held=False, run__state__in=ModelRun.GOING_STATES
        )
        return waiting.filter(Q(next_at=None) | Q(next_at__lte=now))

    def lapsed(self, now: datetime) -> "TrajectoryQuerySet":
        """Calls that nobody keeps alive any more."""
        return self.filter(state=Trajectory.State.CALLING, lease_until__lt=now)

    def in_order(self) -> "TrajectoryQuerySet":
        """As pages show them: by variant, then by number."""
        return self.order_by("variant__position", "number")


class Trajectory(models.Model):
    """One conversation. WAITING -> CALLING -> EVALUATING -> WAITING ... until DONE or STOPPED.

    held         its owner paused it: it ends what it does and then waits
    fence        secret of the one call under way; a result with another is thrown away
    lease_until  after this moment the call counts as lost and is made again
    next_at      no call before: the endpoint asked us to wait
    failures     calls in a row that brought no turn
    """

    class State(models.TextChoices):
        WAITING = "WAITING"
        CALLING = "CALLING"
        EVALUATING = "EVALUATING"
        DONE = "DONE"
        STOPPED = "STOPPED"

    class Ending(models.TextChoices):
        TARGET_MET = "TARGET_MET"
        TURNS_USED = "TURNS_USED"
        OUT_OF_CONTEXT = "OUT_OF_CONTEXT"
        BUDGET = "BUDGET"
        CANCELLED = "CANCELLED"
        ENDPOINT_ERROR = "ENDPOINT_ERROR"
        INFRA = "INFRA"

    OPEN_STATES = (State.WAITING, State.CALLING, State.EVALUATING)
    ACTIVE_STATES = (State.CALLING, State.EVALUATING)
    BY_THEMSELVES = (Ending.TARGET_MET, Ending.TURNS_USED, Ending.OUT_OF_CONTEXT)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(ModelRun, on_delete=models.CASCADE, related_name="trajectories")
    variant = models.ForeignKey(RunVariant, on_delete=models.CASCADE, related_name="trajectories")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    held = models.BooleanField(default=False)
    ending = models.CharField(max_length=20, choices=Ending, blank=True)
    reason = models.TextField(blank=True)
    fence = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    doorbell_at = models.DateTimeField(null=True, blank=True)
    doorbell_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = TrajectoryQuerySet.as_manager()

    class Meta:
        ordering = ["run", "variant", "number"]
        verbose_name_plural = "trajectories"
        constraints = [
            models.UniqueConstraint(
                fields=["variant", "number"], name="trajectory_number_is_unique"
            ),
            models.CheckConstraint(
                condition=Q(state="CALLING", fence__isnull=False, lease_until__isnull=False)
                | (~Q(state="CALLING") & Q(fence__isnull=True, lease_until__isnull=True)),
                name="trajectory_calls_with_a_fence_and_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["DONE", "STOPPED"], ended_at__isnull=False) & ~Q(ending="")
                | Q(
                    state__in=["WAITING", "CALLING", "EVALUATING"],
                    ended_at__isnull=True,
                    ending="",
                ),
                name="trajectory_ends_with_a_reason",
            ),
        ]
        indexes = [
            # reconciler and reaper: few trajectories are open at any time
            models.Index(
                fields=["state", "next_at"],
                condition=Q(state__in=["WAITING", "CALLING", "EVALUATING"]),
                name="trajectory_open",
            )
        ]

    def __str__(self) -> str:
        return f"{self.variant.slug} {self.number}"

    def get_absolute_url(self) -> str:
        return reverse("trajectory", args=[self.id])

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN_STATES

    @property
    def label(self) -> str:
        """Names the trajectory inside its run: `no-schedule/2`."""
        return f"{self.variant.slug}/{self.number}"
