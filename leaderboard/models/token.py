"""Tokens of people (submit) and of machines (worker); only their SHA-256 is kept."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q


class ApiToken(models.Model):
    """A worker's token serves `lanes`: building for every target, running on `targets` only."""

    class Scope(models.TextChoices):
        SUBMIT = "submit"
        WORKER = "worker"

    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=16)
    scope = models.CharField(max_length=10, choices=Scope)
    label = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE
    )
    worker_name = models.CharField(max_length=100, blank=True)
    lanes = models.JSONField(default=list, blank=True)
    targets = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                name="token_belongs_to_a_user_or_a_worker",
                condition=Q(scope="submit", user__isnull=False, worker_name="")
                | (Q(scope="worker", user__isnull=True) & ~Q(worker_name="")),
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}... ({self.scope})"

    def serves(self, *, lane: str, target: str) -> bool:
        return lane in self.lanes and (lane == "build" or target in self.targets)

    @property
    def scope_words(self) -> str:
        """What a worker's token may do, for messages."""
        runs = f"run on {', '.join(self.targets)}" if self.targets else ""
        return " and ".join(filter(None, ["build" if "build" in self.lanes else "", runs]))

    def refusal(self, now: datetime) -> str | None:
        """Why this token opens nothing any more; None while it is good."""
        if self.revoked_at and self.revoked_at <= now:
            return f"the token {self.prefix}... was revoked on {self.revoked_at:%Y-%m-%d %H:%M} UTC"
        if self.expires_at and self.expires_at <= now:
            return f"the token {self.prefix}... expired on {self.expires_at:%Y-%m-%d %H:%M} UTC"
        return None
