"""One call of a model and what came of it, in a chain of digests."""

import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.urls import reverse

from evaluator.records.base import digest_of
from leaderboard.models.stage_record import chained_digest
from leaderboard.models.submission import VERDICTS, Submission
from leaderboard.models.trajectory import Trajectory

if TYPE_CHECKING:
    from leaderboard.models.evaluation import Evaluation


class TurnQuerySet(models.QuerySet["Turn"]):
    def counted(self) -> "TurnQuerySet":
        """Without those that were lost to infrastructure and repeated."""
        return self.filter(excluded=False)

    def for_grid(self) -> "TurnQuerySet":
        """What a tile shows, without prompts and answers."""
        return self.defer("packed_request", "packed_reply", "answer", "reasoning", "feedback")


class Turn(models.Model):
    """One call of the model and what came of it; written in two steps, each a link of the chain.

    number            1 to the run's turn_count; `repeat` counts turns of that number lost before
    packed_request    zlib of the very bytes that were sent; `request_digest` is their SHA-256
    packed_reply      zlib of the reply as it came, cut at a limit
    submission        the kernel's evaluation; None where the answer held no kernel
    is_shared         the same kernel was handed in before: its evaluation counts here too
    verdict, speedup, instruction_status    as they were when the feedback was written
    excluded          lost to infrastructure, for `excluded_reason`; in no denominator
    parent            the turn that the model saw last; None for the first
    call_digest       chain of {"previous", "record": call_record}; follows the digest of the turn
                      stored before, excluded or not, and before the first the run's own
    digest            chain of {"previous": call_digest, "record": outcome_record}; "" until closed
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveIntegerField()
    repeat = models.PositiveIntegerField(default=0)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    packed_request = models.BinaryField()
    request_digest = models.CharField(max_length=64)
    request_byte_count = models.PositiveIntegerField()
    packed_reply = models.BinaryField()
    reported_model = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=200, blank=True)
    answer = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    finish_reason = models.CharField(max_length=60, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    reasoning_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    extraction_state = models.CharField(max_length=20)
    extraction_message = models.TextField(blank=True)
    submission = models.ForeignKey(
        Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="turns"
    )
    is_shared = models.BooleanField(default=False)
    verdict = models.CharField(max_length=30, choices=VERDICTS, blank=True)
    speedup = models.FloatField(null=True, blank=True)
    instruction_status = models.CharField(max_length=20, blank=True)
    evaluation_digest = models.CharField(max_length=64, blank=True)
    feedback = models.TextField(blank=True)
    excluded = models.BooleanField(default=False)
    excluded_reason = models.TextField(blank=True)
    called_at = models.DateTimeField()
    replied_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    previous_digest = models.CharField(max_length=64)
    call_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ["trajectory", "number", "repeat"]
        constraints = [
            models.UniqueConstraint(
                fields=["trajectory", "number"],
                condition=Q(excluded=False),
                name="turn_is_taken_once",
            ),
            models.UniqueConstraint(
                fields=["trajectory", "number", "repeat"], name="turn_repeat_is_unique"
            ),
            models.UniqueConstraint(
                fields=["trajectory"],
                condition=Q(closed_at__isnull=True),
                name="turn_is_the_only_open_one",
            ),
            models.CheckConstraint(
                condition=Q(excluded=False) | ~Q(excluded_reason=""),
                name="turn_is_excluded_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.number}"

    def get_absolute_url(self) -> str:
        return reverse("turn", args=[self.pk])

    @cached_property
    def request_bytes(self) -> bytes:
        return zlib.decompress(bytes(self.packed_request))

    @cached_property
    def reply_text(self) -> str:
        return zlib.decompress(bytes(self.packed_reply)).decode("utf-8", "replace")

    @property
    def is_closed(self) -> bool:
        return self.closed_at is not None

    @property
    def source(self) -> str | None:
        """The kernel that was taken from the answer; None where there was none."""
        return self.submission.candidate.sources[0].content if self.submission else None

    @property
    def evaluation(self) -> "Evaluation | None":
        """The kernel's valid evaluation as it stands today, corrections included."""
        return self.submission.evaluation if self.submission else None

    @property
    def call_record(self) -> dict[str, Any]:
        """What the call left behind: covered by `call_digest`."""
        return {
            "number": self.number,
            "repeat": self.repeat,
            "request_digest": self.request_digest,
            "reply_digest": digest_of(self.reply_text),
            "answer_digest": digest_of(self.answer),
            "reasoning_digest": digest_of(self.reasoning),
            "reported_model": self.reported_model,
            "request_id": self.request_id,
            "finish_reason": self.finish_reason,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "cached_tokens": self.cached_tokens,
            "extraction_state": self.extraction_state,
            "extraction_message": self.extraction_message,
            "submission": str(self.submission_id) if self.submission_id else None,
            "called_at": self.called_at.isoformat(),
            "replied_at": self.replied_at.isoformat(),
        }

    @property
    def outcome_record(self) -> dict[str, Any]:
        """What was told to the model about it: covered by `digest`."""
        return {
            "verdict": self.verdict or None,
            "speedup": self.speedup,
            "instruction_status": self.instruction_status or None,
            "evaluation_digest": self.evaluation_digest,
            "feedback": self.feedback,
            "excluded": self.excluded,
            "excluded_reason": self.excluded_reason,
            "closed_at": self.closed_at.isoformat() if self.closed_at else None,
        }

    @property
    def computed_call_digest(self) -> str:
        return chained_digest(self.previous_digest, self.call_record)

    @property
    def computed_digest(self) -> str:
        return chained_digest(self.call_digest, self.outcome_record)
