"""What a worker reported of one stage, append-only, in a chain of digests."""

import json
from functools import cached_property
from typing import Any

from django.db import models

from evaluator.records.base import digest_of
from evaluator.records.evaluation import AnyStageResult, stage_result_from_json
from evaluator.records.verdicts import Stage
from leaderboard.models.attempt import Attempt
from leaderboard.models.submission import VERDICTS

STAGES = [(stage.value, stage.value) for stage in Stage]


def chained_digest(previous: str, result: dict[str, Any]) -> str:
    """SHA-256 over canonical JSON of the record together with the digest before it."""
    return digest_of({"previous": previous, "record": result})


class StageRecord(models.Model):
    """`result_json` is the canonical JSON of the whole StageResult, evidence included.

    previous_digest  of the record before; the candidate's digest before the first
    digest           SHA-256 of {"previous": previous_digest, "record": result}
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="stage_records")
    stage = models.CharField(max_length=20, choices=STAGES)
    verdict = models.CharField(max_length=30, choices=VERDICTS)
    message = models.TextField(blank=True)
    result_json = models.TextField()
    previous_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    posted_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "stage"], name="stage_is_recorded_once")
        ]

    def __str__(self) -> str:
        return f"{self.stage}: {self.verdict}"

    @cached_property
    def result(self) -> AnyStageResult:
        return stage_result_from_json(json.loads(self.result_json))

    @cached_property
    def evidence(self) -> dict[str, Any] | None:
        """The stage's evidence as JSON; None where the stage gave none."""
        evidence: dict[str, Any] | None = json.loads(self.result_json).get("evidence")
        return evidence

    @property
    def computed_digest(self) -> str:
        return chained_digest(self.previous_digest, json.loads(self.result_json))
