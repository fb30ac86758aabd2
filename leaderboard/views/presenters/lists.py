"""Submissions in a list: newest first, one query a page, no counting."""

import uuid
from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery

from leaderboard.models import Evaluation, Submission
from leaderboard.views.presenters.states import submission_badge
from leaderboard.views.presenters.words import Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    submission: Submission
    badge: Badge
    speedup: float | None


def listed(submission: Submission) -> Listed:
    """`speedup` comes from the annotation of `with_speedup`; None where there is no score."""
    return Listed(
        submission=submission,
        badge=submission_badge(submission),
        speedup=getattr(submission, "valid_speedup", None),
    )


def with_speedup(rows: QuerySet[Submission]) -> QuerySet[Submission]:
    """Each row's speedup of its valid evaluation, as `valid_speedup`, in the same query."""
    valid = Evaluation.objects.valid().filter(submission=OuterRef("pk"))
    return rows.annotate(valid_speedup=Subquery(valid.values("speedup")[:1]))


def older_than(rows: QuerySet[Submission], mark: str) -> QuerySet[Submission]:
    """Rows after the submission whose id is `mark` in newest-first order; all for another text."""
    try:
        last = Submission.objects.filter(pk=uuid.UUID(mark)).only("created_at").first()
    except ValueError:
        return rows
    if last is None:
        return rows
    earlier = Q(created_at__lt=last.created_at)
    return rows.filter(earlier | Q(created_at=last.created_at, id__lt=last.id))
