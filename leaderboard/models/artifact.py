"""Bytes kept by their SHA-256 below PTXBOARD_ARTIFACTS, and which stages made them."""

import re
from pathlib import Path

from django.conf import settings
from django.db import models

from leaderboard.models.stage_record import StageRecord


class Artifact(models.Model):
    """`is_text` is found out when the bytes come in: UTF-8 without NUL."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    byte_count = models.PositiveBigIntegerField()
    is_text = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["sha256"]

    def __str__(self) -> str:
        return self.sha256

    @property
    def path(self) -> Path:
        return artifact_path(self.sha256)


class StageArtifact(models.Model):
    """A stage's artifact in its role: `library`, `cubin`, `listing`, `log`, ..."""

    stage_record = models.ForeignKey(
        StageRecord, on_delete=models.CASCADE, related_name="stage_artifacts"
    )
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="uses")
    role = models.CharField(max_length=60)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["stage_record", "artifact", "role"], name="artifact_role_is_listed_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.artifact_id}"


def artifact_path(sha256: str) -> Path:
    """Raises ValueError for anything but a digest: it becomes part of a path."""
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise ValueError(f"{sha256[:80]!r} is no SHA-256 in lower-case hexadecimal")
    return Path(settings.PTXBOARD_ARTIFACTS) / sha256[:2] / sha256
