"""The chain of what people and the site did; appending takes the head row first."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluator.records.base import canonical_json, digest_of
from leaderboard.models import AuditEntry, AuditHead


@transaction.atomic
def audit_append(
    *, actor: str, action: str, subject: object, detail: dict[str, Any] | None = None
) -> AuditEntry:
    AuditHead.objects.get_or_create(pk=1)
    head = AuditHead.objects.select_for_update().get(pk=1)
    entry = AuditEntry(
        sequence=head.sequence + 1,
        actor=actor,
        action=action,
        subject=str(subject),
        detail_json=canonical_json(detail or {}),
        created_at=timezone.now(),
        previous_digest=head.digest,
    )
    entry.digest = entry_digest(entry)
    entry.save(force_insert=True)
    AuditHead.objects.filter(pk=1).update(sequence=entry.sequence, digest=entry.digest)
    return entry


def entry_digest(entry: AuditEntry) -> str:
    return digest_of(
        {
            "sequence": entry.sequence,
            "actor": entry.actor,
            "action": entry.action,
            "subject": entry.subject,
            "detail": entry.detail_json,
            "created_at": entry.created_at.isoformat(),
            "previous": entry.previous_digest,
        }
    )


def first_broken_entry(entries: Iterable[AuditEntry]) -> AuditEntry | None:
    """The first entry that does not follow from the one before; None when the chain holds."""
    previous = "0" * 64
    for entry in entries:
        if entry.previous_digest != previous or entry.digest != entry_digest(entry):
            return entry
        previous = entry.digest
    return None
