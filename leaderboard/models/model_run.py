"""A model's run on one problem: prompt variants x trajectories x turns, each turn a record.

What a run was asked to do never changes after it was made: its settings have a digest, which is
the head of the chain of every trajectory's turns.
"""

import json
import uuid
import zlib
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from evaluator import SCORING_VERSION
from evaluator.records.base import digest_of
from evaluator.targets import TARGETS, Target
from leaderboard.models.entrant import Entrant
from leaderboard.models.evaluation import Evaluation
from leaderboard.models.problem import Problem
from leaderboard.models.submission import TARGET_SLUGS


def scoring_version_now() -> str:
    return SCORING_VERSION


class ModelRunQuerySet(models.QuerySet["ModelRun"]):
    def open(self) -> "ModelRunQuerySet":
        return self.filter(state__in=ModelRun.OPEN_STATES)

    def for_list(self) -> "ModelRunQuerySet":
        """Newest first without what only the run itself needs; one query."""
        rows = self.select_related("entrant", "owner", "problem")
        return rows.defer("key_ciphertext", "problem__record_json").order_by("-created_at", "-id")


class ModelRun(models.Model):
    """One problem on one target; a request for several problems makes several runs of one `batch`.

    key_ciphertext    the endpoint's key, encrypted; emptied when the run ends. Shown nowhere
    endpoint_digest   of the whole `base_url`, where a run was taken in and only its host is known
    parameters        what is sent with every call, as `leaderboard.endpoints.parameters` has it
    prices            US dollars per million tokens, as the owner gave them; None: cost is unknown
    limit_*           budgets, None: no limit. Checked before each call; calls under way end
    held_seconds      how long the run was paused before, which no wall-time budget counts
    digest            SHA-256 over `settings_record`: the head of every trajectory's chain
    trust             who says what its turns found; `verified`: our own workers
    scoring_version   what its turns were measured by when it was made
    unranked_reason   why it counts on no board; "": it counts
    """

    Trust = Evaluation.Trust

    class State(models.TextChoices):
        QUEUED = "QUEUED"
        RUNNING = "RUNNING"
        PAUSED = "PAUSED"
        DONE = "DONE"
        CANCELLED = "CANCELLED"
        FAULTED = "FAULTED"

    class Policy(models.TextChoices):
        FULL = "full"
        LATEST_PAIR = "latest-pair"
        SINGLE_USER = "single-user"

    OPEN_STATES = (State.QUEUED, State.RUNNING, State.PAUSED)
    GOING_STATES = (State.QUEUED, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    batch = models.UUIDField(default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="model_runs"
    )
    entrant = models.ForeignKey(Entrant, on_delete=models.PROTECT, related_name="model_runs")
    name = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    api = models.CharField(max_length=30)
    base_url = models.CharField(max_length=500)
    endpoint_digest = models.CharField(max_length=64, blank=True, editable=False)
    key_ciphertext = models.TextField(blank=True, editable=False)
    key_deleted_at = models.DateTimeField(null=True, blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="model_runs")
    target = models.CharField(max_length=20, choices=TARGET_SLUGS)
    language = models.CharField(max_length=10)
    binding = models.CharField(max_length=10)
    pack_name = models.CharField(max_length=40, blank=True)
    pack_version = models.CharField(max_length=40, blank=True)
    pack_digest = models.CharField(max_length=64, blank=True)
    level = models.CharField(max_length=20, blank=True)
    guidance = models.BooleanField(default=False)
    trajectory_count = models.PositiveIntegerField()
    turn_count = models.PositiveIntegerField()
    target_speedup = models.FloatField()
    policy = models.CharField(max_length=20, choices=Policy, default=Policy.FULL)
    max_parallel = models.PositiveIntegerField()
    limit_turns = models.PositiveIntegerField(null=True, blank=True)
    limit_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    limit_cost_usd = models.FloatField(null=True, blank=True)
    limit_seconds = models.PositiveIntegerField(null=True, blank=True)
    price_prompt_usd = models.FloatField(null=True, blank=True)
    price_completion_usd = models.FloatField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    reason = models.TextField(blank=True)
    trust = models.CharField(max_length=20, choices=Trust, default=Trust.VERIFIED)
    scoring_version = models.CharField(max_length=20, default=scoring_version_now)
    unranked_reason = models.TextField(blank=True)
    harness_version = models.CharField(max_length=40)
    digest = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    body_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    held_seconds = models.FloatField(default=0.0)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = ModelRunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "idempotency_key", "problem"],
                condition=Q(idempotency_key__isnull=False),
                name="model_run_key_is_used_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["QUEUED", "RUNNING", "PAUSED"], ended_at__isnull=True)
                | Q(
                    state__in=["DONE", "CANCELLED", "FAULTED"],
                    ended_at__isnull=False,
                    key_ciphertext="",
                ),
                name="model_run_that_ended_holds_no_key",
            ),
            models.CheckConstraint(
                condition=Q(trajectory_count__gt=0, turn_count__gt=0, max_parallel__gt=0),
                name="model_run_plans_something",
            ),
        ]
        indexes = [
            # the public list, newest first, by cursor
            models.Index(fields=["-created_at", "-id"], name="model_run_newest_first"),
            # open runs: the reconciler's and the quota's
            models.Index(
                fields=["owner"],
                condition=Q(state__in=["QUEUED", "RUNNING", "PAUSED"]),
                name="model_run_open",
            ),
            # runs of one request
            models.Index(fields=["batch"], name="model_run_of_batch"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("model-run", args=[self.id])

    @property
    def target_record(self) -> Target:
        return TARGETS[self.target]

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN_STATES

    @property
    def is_going(self) -> bool:
        return self.state in self.GOING_STATES

    @property
    def is_taken_in(self) -> bool:
        """Whether another site made it; its owner here is a stand-in."""
        return bool(self.endpoint_digest)

    @property
    def endpoint_host(self) -> str:
        """The endpoint's host, all of its address that is public; "" where there is none."""
        try:
            return urlsplit(self.base_url).hostname or ""
        except ValueError:
            return ""

    @property
    def board_level(self) -> str:
        """The knowledge that its prompts gave, as boards tell conditions apart."""
        return f"{self.level}+guidance" if self.guidance else self.level

    @property
    def settings_digest(self) -> str:
        return digest_of(self.settings_record)

    @property
    def settings_record(self) -> dict[str, Any]:
        """What the run was asked to do, without the key: what `digest` covers."""
        return {
            "format": "ptxboard.model-run/1",
            "run": str(self.pk),
            "model": self.model,
            "api": self.api,
            "endpoint_digest": self.endpoint_digest or digest_of(self.base_url),
            "parameters": self.parameters,
            "problem": self.problem.name,
            "problem_digest": self.problem.digest,
            "target": self.target,
            "language": self.language,
            "binding": self.binding,
            "pack": {
                "name": self.pack_name,
                "version": self.pack_version,
                "digest": self.pack_digest,
                "level": self.level,
                "guidance": self.guidance,
            },
            "variants": {one.slug: one.digest for one in self.variants.all()},
            "trajectory_count": self.trajectory_count,
            "turn_count": self.turn_count,
            "target_speedup": self.target_speedup,
            "policy": self.policy,
            "harness_version": self.harness_version,
            **({} if self.trust == self.Trust.VERIFIED else {"trust": self.trust}),
        }

    def seconds_used(self, now: datetime) -> float:
        """Wall seconds since the first call, pauses left out."""
        if self.started_at is None:
            return 0.0
        until = self.ended_at or self.paused_at or now
        return max(0.0, (until - self.started_at).total_seconds() - self.held_seconds)


class RunVariant(models.Model):
    """A prompt variant with its base prompt, kept to the letter: packs may change, runs do not.

    messages  zlib of the canonical bytes of the base messages; `digest` is their SHA-256
    """

    run = models.ForeignKey(ModelRun, on_delete=models.CASCADE, related_name="variants")
    position = models.PositiveIntegerField()
    slug = models.CharField(max_length=60)
    title = models.CharField(max_length=200)
    schedules = models.JSONField(default=list, blank=True)
    packed_messages = models.BinaryField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["run", "position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "slug"], name="run_variant_is_unique"),
        ]

    def __str__(self) -> str:
        return self.slug

    @cached_property
    def messages_bytes(self) -> bytes:
        return zlib.decompress(bytes(self.packed_messages))

    @cached_property
    def messages(self) -> list[dict[str, str]]:
        """[{"role", "content"}], as every call of the variant begins."""
        found: list[dict[str, str]] = json.loads(self.messages_bytes)
        return found
