"""What people and the site did, in a chain of digests; and corrections of evaluations."""

from django.conf import settings
from django.db import models

from leaderboard.models.evaluation import Evaluation


class AuditHead(models.Model):
    """The one row that writers of the chain update first, so that they come one after another."""

    sequence = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, default="0" * 64)

    def __str__(self) -> str:
        return f"{self.sequence} {self.digest}"


class AuditEntry(models.Model):
    """`digest` covers every other column and the digest of the entry before."""

    sequence = models.PositiveBigIntegerField(primary_key=True)
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    detail_json = models.TextField(default="{}")
    created_at = models.DateTimeField()
    previous_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, unique=True)

    class Meta:
        ordering = ["sequence"]
        verbose_name_plural = "audit entries"
        indexes = [
            # what happened to one submission or token
            models.Index(fields=["subject", "sequence"], name="audit_of_subject")
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.action} {self.subject}"


class Correction(models.Model):
    """An evaluation withdrawn or restored, by whom and why; the evaluation itself stays."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="corrections")
    valid = models.BooleanField()
    reason = models.TextField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"{'restored' if self.valid else 'withdrawn'}: {self.reason[:60]}"
