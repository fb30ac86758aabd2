"""Problems of the evaluator as rows; an old version stays for the evaluations that ran it."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from evaluator.records.base import canonical_json
from evaluator.records.problem import Problem as ProblemRecord
from leaderboard.models import Problem
from leaderboard.models.problem import measured_digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    added: list[str]
    retired: list[str]


@transaction.atomic
def catalogue_sync(*, records: Iterable[ProblemRecord]) -> Synced:
    """Make exactly these versions current, in this order."""
    records = list(records)
    keep = {(record.name, record.digest) for record in records}
    retired = [row for row in Problem.objects.current() if (row.name, row.digest) not in keep]
    Problem.objects.filter(pk__in=[row.pk for row in retired]).update(current=False)
    added = []
    for position, record in enumerate(records):
        row, created = problem_row(record, position=position, current=True)
        if created:
            added.append(row.name)
        Problem.objects.filter(pk=row.pk).update(current=True, position=position)
    return Synced(added=added, retired=[row.name for row in retired])


def problem_row(
    record: ProblemRecord, *, position: int = 0, current: bool = False
) -> tuple[Problem, bool]:
    """The row of this version, made if it is new."""
    return Problem.objects.get_or_create(
        name=record.name,
        digest=record.digest,
        defaults={
            "measured_digest": measured_digest_of(record),
            "current": current,
            "position": position,
            "title": record.title,
            "family": record.family.value,
            "development": record.development,
            "targets": list(record.targets),
            "flop_count": record.flop_count,
            "byte_count": record.byte_count,
            "record_json": canonical_json(record.model_dump(mode="json")),
        },
    )
