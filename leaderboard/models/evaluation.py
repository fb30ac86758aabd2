"""What a job found: verdict, score and target instructions, recomputed here from its stages."""

from functools import cached_property

from django.db import models
from django.db.models import Q

from evaluator import SCORING_VERSION
from evaluator.records.evaluation import EvaluationRecord
from evaluator.records.verdicts import InstructionStatus, Tier
from leaderboard.models.job import Job
from leaderboard.models.problem import Problem
from leaderboard.models.submission import TARGET_SLUGS, VERDICTS, Submission

INSTRUCTION_STATUSES = [(status.value, status.value) for status in InstructionStatus]
TIERS = [(tier.value, tier.value) for tier in Tier]


class EvaluationQuerySet(models.QuerySet["Evaluation"]):
    def valid(self) -> "EvaluationQuerySet":
        return self.filter(valid=True)

    def ranked(
        self, *, target: str, problem: Problem, scoring_version: str = SCORING_VERSION
    ) -> "EvaluationQuerySet":
        """Rows of a board in order: the fastest first, and of equal ones the earlier.

        Verified and valid evaluations of this problem, measured alike, under one scoring version.
        """
        return self.filter(
            target=target,
            problem__in=Problem.objects.same_board(problem),
            valid=True,
            speedup__isnull=False,
            scoring_version=scoring_version,
            trust__in=[Evaluation.Trust.VERIFIED, Evaluation.Trust.REPRODUCED],
        ).order_by("-speedup", "submission__created_at", "submission_id")

    def with_entrants(self) -> "EvaluationQuerySet":
        """With submission and entrant, without the texts that only a submission's page needs."""
        rows = self.select_related("submission__entrant")
        return rows.defer("record_json", "submission__candidate_json")


class Evaluation(models.Model):
    """One a job; at most one valid a submission. Times are nanoseconds, noise is a fraction.

    A verdict other than PASSED carries no score; `record_json` is the EvaluationRecord whole.
    """

    class Trust(models.TextChoices):
        PUBLISHED = "published"
        SELF_REPORTED = "self-reported"
        VERIFIED = "verified"
        REPRODUCED = "reproduced"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="evaluations")
    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="evaluation")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="evaluations")
    target = models.CharField(max_length=20, choices=TARGET_SLUGS)
    valid = models.BooleanField(default=True)
    trust = models.CharField(max_length=20, choices=Trust, default=Trust.VERIFIED)
    verdict = models.CharField(max_length=30, choices=VERDICTS)
    message = models.TextField(blank=True)
    scoring_version = models.CharField(max_length=20)
    latency_ns = models.FloatField(null=True, blank=True)
    baseline_latency_ns = models.FloatField(null=True, blank=True)
    speedup = models.FloatField(null=True, blank=True)
    speedup_low = models.FloatField(null=True, blank=True)
    speedup_high = models.FloatField(null=True, blank=True)
    noise = models.FloatField(null=True, blank=True)
    sample_count = models.PositiveIntegerField(null=True, blank=True)
    baseline_name = models.CharField(max_length=200, blank=True)
    baseline_version = models.CharField(max_length=200, blank=True)
    baseline_sample_count = models.PositiveIntegerField(null=True, blank=True)
    instruction_status = models.CharField(max_length=20, choices=INSTRUCTION_STATUSES, blank=True)
    instruction_reason = models.TextField(blank=True)
    instruction_tier = models.CharField(max_length=10, choices=TIERS, blank=True)
    work_share = models.FloatField(null=True, blank=True)
    work_share_reason = models.TextField(blank=True)
    worker = models.CharField(max_length=100, blank=True)
    environment = models.JSONField(null=True, blank=True)
    record_json = models.TextField()
    chain_digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    objects = EvaluationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission"],
                condition=Q(valid=True),
                name="evaluation_is_the_only_valid_one",
            ),
            models.CheckConstraint(
                condition=Q(verdict="PASSED") | Q(latency_ns__isnull=True, speedup__isnull=True),
                name="evaluation_scores_only_what_passed",
            ),
            models.CheckConstraint(
                condition=Q(
                    latency_ns__gt=0,
                    baseline_latency_ns__gt=0,
                    speedup__gt=0,
                    speedup_low__isnull=False,
                    speedup_high__isnull=False,
                    noise__gte=0,
                    sample_count__gt=0,
                )
                | Q(
                    latency_ns__isnull=True,
                    baseline_latency_ns__isnull=True,
                    speedup__isnull=True,
                    speedup_low__isnull=True,
                    speedup_high__isnull=True,
                    noise__isnull=True,
                    sample_count__isnull=True,
                ),
                name="evaluation_score_is_whole_or_absent",
            ),
        ]
        indexes = [
            # one board: rows of a target and problem version in rank order
            models.Index(
                fields=["target", "problem", "scoring_version", "-speedup"],
                condition=Q(valid=True, speedup__isnull=False),
                name="evaluation_board",
            )
        ]

    def __str__(self) -> str:
        return f"{self.verdict} for {self.submission_id}"

    @cached_property
    def record(self) -> EvaluationRecord:
        return EvaluationRecord.from_json(self.record_json)
