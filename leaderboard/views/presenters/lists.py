"""Rows in a list: newest first, one query a page, no counting."""

import uuid
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Q, QuerySet

from leaderboard.models import ModelRun, Submission
from leaderboard.views.presenters.states import submission_badge
from leaderboard.views.presenters.words import Badge

Row = TypeVar("Row", Submission, ModelRun)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    submission: Submission
    badge: Badge
    speedup: float | None
    message: str


def listed(submission: Submission) -> Listed:
    """A row of `for_list`; `speedup` is None where there is no score."""
    badge = submission_badge(submission)
    return Listed(
        submission=submission,
        badge=badge,
        speedup=submission.valid_speedup,  # type: ignore[attr-defined]
        message=badge.title if submission.is_withdrawn else submission.message,
    )


def older_than(rows: QuerySet[Row], mark: str) -> QuerySet[Row]:
    """Rows after the one whose id is `mark` in newest-first order; all for another text."""
    try:
        last = rows.model.objects.filter(pk=uuid.UUID(mark)).only("created_at").first()
    except ValueError:
        return rows
    if last is None:
        return rows
    earlier = Q(created_at__lt=last.created_at)
    return rows.filter(earlier | Q(created_at=last.created_at, id__lt=last.id))
