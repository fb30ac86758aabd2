"""A kernel handed in for one problem on one target."""

import uuid
from functools import cached_property
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery
from django.urls import reverse

from evaluator.records.candidate import Candidate
from evaluator.records.verdicts import Verdict
from evaluator.targets import TARGETS, Target
from leaderboard.models.entrant import Entrant
from leaderboard.models.problem import Problem

if TYPE_CHECKING:
    from leaderboard.models.evaluation import Evaluation

VERDICTS = [(verdict.value, verdict.value) for verdict in Verdict]
TARGET_SLUGS = [(target.slug, target.title) for target in TARGETS.values()]


class SubmissionQuerySet(models.QuerySet["Submission"]):
    def for_list(self) -> "SubmissionQuerySet":
        """Newest first without the sources, which may hold 1 MiB each; one query.

        `valid_speedup` is the valid evaluation's; `was_withdrawn`: only others are left.
        """
        evaluations = self.model._meta.get_field("evaluations").related_model
        all_of_it = evaluations.objects.filter(submission=OuterRef("pk"))
        valid = all_of_it.filter(valid=True)
        return (
            self.select_related("entrant", "problem")
            .defer("candidate_json", "problem__record_json")
            .annotate(
                valid_speedup=Subquery(valid.values("speedup")[:1]),
                was_withdrawn=Exists(all_of_it) & ~Exists(valid),
            )
            .order_by("-created_at", "-id")
        )

    def in_flight(self) -> "SubmissionQuerySet":
        return self.filter(state__in=Submission.OPEN_STATES)


class Submission(models.Model):
    """`state` says where the work is, `verdict` what was found; a fault of ours has no verdict.

    candidate_json  canonical JSON of the Candidate record; its SHA-256 is `candidate_digest`
    key_digest      SHA-256 of the body that came with `idempotency_key`
    """

    class State(models.TextChoices):
        QUEUED = "QUEUED"
        RUNNING = "RUNNING"
        DONE = "DONE"
        FAULTED = "FAULTED"
        CANCELLED = "CANCELLED"

    OPEN_STATES = (State.QUEUED, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    entrant = models.ForeignKey(Entrant, on_delete=models.PROTECT, related_name="submissions")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="submissions")
    target = models.CharField(max_length=20, choices=TARGET_SLUGS)
    language = models.CharField(max_length=10)
    binding = models.CharField(max_length=10)
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    candidate_json = models.TextField()
    candidate_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    verdict = models.CharField(max_length=30, choices=VERDICTS, null=True, blank=True)  # noqa: DJ001
    message = models.TextField(blank=True)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    key_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["entrant", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="submission_key_is_used_once",
            ),
            models.UniqueConstraint(
                fields=["entrant", "problem", "target", "candidate_digest"],
                name="submission_content_is_handed_in_once",
            ),
            models.CheckConstraint(
                condition=Q(state="DONE", verdict__isnull=False)
                | (~Q(state="DONE") & Q(verdict__isnull=True)),
                name="submission_has_a_verdict_when_done",
            ),
        ]
        indexes = [
            # the public list, newest first, by cursor
            models.Index(fields=["-created_at", "-id"], name="submission_newest_first"),
            # an entrant's own list
            models.Index(fields=["entrant", "-created_at"], name="submission_of_entrant"),
            # in-flight quota: few rows are open at any time
            models.Index(
                fields=["entrant"],
                condition=Q(state__in=["QUEUED", "RUNNING"]),
                name="submission_in_flight",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("submission", args=[self.id])

    @cached_property
    def candidate(self) -> Candidate:
        return Candidate.from_json(self.candidate_json)

    @property
    def target_record(self) -> Target:
        return TARGETS[self.target]

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN_STATES

    @property
    def is_withdrawn(self) -> bool:
        """It was evaluated, and the evaluation was taken back by a correction."""
        if self.state != self.State.DONE:
            return False
        known: bool | None = getattr(self, "was_withdrawn", None)
        return known if known is not None else not self.evaluation and self.evaluations.exists()

    @cached_property
    def evaluation(self) -> "Evaluation | None":
        """The newest valid evaluation; None before the first one."""
        return self.evaluations.filter(valid=True).first()
