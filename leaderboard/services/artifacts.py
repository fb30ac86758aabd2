"""Artifacts by SHA-256: streamed to disk, digest checked, stored once."""

import codecs
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from django.conf import settings

from leaderboard.models import Artifact, Attempt
from leaderboard.models.artifact import artifact_path
from leaderboard.refusals import ArtifactMismatch, BodyTooLarge, StaleFence
from leaderboard.services.attempts import attempt_find, check_fence


def artifact_permit(*, attempt_id: str, fence: str) -> None:
    """Only the worker that runs an attempt may add artifacts. Raises AttemptUnknown, StaleFence."""
    attempt = attempt_find(attempt_id)
    check_fence(attempt, fence)
    if attempt.state != Attempt.State.RUNNING:
        raise StaleFence(f"attempt {attempt.pk} is {attempt.state}; nothing is added to it")


def artifact_put(*, sha256: str, chunks: Iterable[bytes]) -> tuple[Artifact, bool]:
    """The artifact and whether it is new. Memory stays flat: a chunk at a time goes to disk.

    Raises BodyTooLarge, ArtifactMismatch (nothing is kept then).
    """
    known = Artifact.objects.filter(pk=sha256).first()
    if known and known.path.exists():
        return known, False
    path = artifact_path(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="incoming-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            seen, byte_count, is_text = _copy(chunks, file)
        if seen != sha256:
            raise ArtifactMismatch(
                f"the body's SHA-256 is {seen}, the address says {sha256}; nothing was stored"
            )
        Path(name).chmod(0o644)
        os.replace(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    return Artifact.objects.get_or_create(
        sha256=sha256, defaults={"byte_count": byte_count, "is_text": is_text}
    )


def _copy(chunks: Iterable[bytes], file: IO[bytes]) -> tuple[str, int, bool]:
    digest, byte_count, limit = hashlib.sha256(), 0, settings.PTXBOARD_MAX_ARTIFACT_BYTES
    decoder, is_text = codecs.getincrementaldecoder("utf-8")(), True
    for chunk in chunks:
        byte_count += len(chunk)
        if byte_count > limit:
            raise BodyTooLarge(f"the artifact holds more than {limit} bytes, the largest accepted")
        digest.update(chunk)
        file.write(chunk)
        is_text = is_text and _decodes(decoder, chunk)
    is_text = is_text and _decodes(decoder, b"", final=True)
    return digest.hexdigest(), byte_count, is_text


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        return "\x00" not in decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
