"""A problem of the catalogue, one row a version; evaluations keep the version they ran."""

from functools import cached_property

from django.db import models
from django.db.models import Q

from evaluator.records.base import digest_of
from evaluator.records.problem import Problem as ProblemRecord

WORDS_ONLY = {"title", "targets", "development", "flop_count", "byte_count"}


def measured_digest_of(record: ProblemRecord) -> str:
    """Digest of what decides a verdict or a time: a better title must not empty a board."""
    value = record.model_dump(mode="json", exclude=WORDS_ONLY)
    value["definition"] = {
        key: part for key, part in value["definition"].items() if key not in ("description", "tags")
    }
    return digest_of(value)


class ProblemQuerySet(models.QuerySet["Problem"]):
    def current(self) -> "ProblemQuerySet":
        return self.filter(current=True)

    def same_board(self, problem: "Problem") -> "ProblemQuerySet":
        """Every version that was measured alike and so shares a board."""
        return self.filter(name=problem.name, measured_digest=problem.measured_digest)


class Problem(models.Model):
    """`record_json` is the whole record as canonical JSON; the columns are for lists and order."""

    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64)
    measured_digest = models.CharField(max_length=64)
    current = models.BooleanField(default=True)
    position = models.PositiveIntegerField(default=0)
    title = models.CharField(max_length=200)
    family = models.CharField(max_length=30)
    development = models.BooleanField(default=False)
    targets = models.JSONField(default=list)
    flop_count = models.PositiveBigIntegerField()
    byte_count = models.PositiveBigIntegerField()
    record_json = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProblemQuerySet.as_manager()

    class Meta:
        ordering = ["position", "name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["name", "digest"], name="problem_version_is_unique"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(current=True), name="problem_has_one_current_version"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def record(self) -> ProblemRecord:
        return ProblemRecord.from_json(self.record_json)
