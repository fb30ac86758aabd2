"""One evaluation of a submission from build to verdict; a re-run is a new job."""

import uuid

from django.db import models
from django.db.models import Q

from leaderboard.models.submission import Submission


class Job(models.Model):
    class State(models.TextChoices):
        QUEUED = "QUEUED"
        RUNNING = "RUNNING"
        DONE = "DONE"
        FAULTED = "FAULTED"
        CANCELLED = "CANCELLED"

    class Lane(models.TextChoices):
        BUILD = "build"
        GPU = "gpu"

    OPEN_STATES = (State.QUEUED, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="jobs")
    number = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    lane = models.CharField(max_length=10, choices=Lane, default=Lane.BUILD)
    reason = models.TextField(blank=True)
    message = models.TextField(blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["submission", "number"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "number"], name="job_number_is_unique"),
            models.UniqueConstraint(
                fields=["submission"],
                condition=Q(state__in=["QUEUED", "RUNNING"]),
                name="job_is_the_only_open_one",
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.number} of {self.submission_id}"
