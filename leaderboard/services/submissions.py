"""Handing in, cancelling and running again."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from evaluator.records.base import canonical_json
from evaluator.records.verdicts import Verdict
from leaderboard.models import Attempt, Entrant, Job, Submission
from leaderboard.refusals import (
    DuplicateContent,
    KeyReused,
    NotAllowed,
    NotPossible,
    QuotaReached,
)
from leaderboard.services.attempts import attempt_enqueue
from leaderboard.services.audit import audit_append
from leaderboard.services.drafts import CheckedDraft, Draft, check_draft
from leaderboard.services.settling import submission_settle

__all__ = [
    "Created",
    "Draft",
    "Quota",
    "quota_of",
    "submission_cancel",
    "submission_create",
    "submission_of_turn",
    "submission_rerun",
    "submission_stop",
]

RETRY_AFTER_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """`created` is False where an Idempotency-Key named a submission that was already there."""

    submission: Submission
    created: bool


def submission_create(
    *,
    entrant: Entrant,
    draft: Draft,
    idempotency_key: str | None = None,
    body_digest: str = "",
) -> Created:
    """A new submission, queued for its build; or the one that the same key made before.

    Raises InvalidSubmission, KeyReused, DuplicateContent, QuotaReached.
    """
    if earlier := submission_of_key(
        entrant=entrant, idempotency_key=idempotency_key, body_digest=body_digest
    ):
        return Created(submission=earlier, created=False)
    checked = check_draft(draft)
    return _insert(entrant, checked, idempotency_key, body_digest)


def submission_of_key(
    *, entrant: Entrant, idempotency_key: str | None, body_digest: str
) -> Submission | None:
    """Raises KeyReused where the key came with another body."""
    if idempotency_key is None:
        return None
    earlier = entrant.submissions.filter(idempotency_key=idempotency_key).first()
    if earlier and earlier.key_digest != body_digest:
        raise KeyReused(
            f"Idempotency-Key {idempotency_key[:60]!r} was used for submission {earlier.id} with "
            "another body; use a new key for a new submission"
        )
    return earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Only open submissions count: what ended, whatever the end, costs nothing."""

    seen: int
    limit: int

    @property
    def is_reached(self) -> bool:
        return self.seen >= self.limit


def quota_of(*, entrant: Entrant) -> Quota:
    seen = entrant.submissions.in_flight().count()
    return Quota(seen=seen, limit=settings.PTXBOARD_IN_FLIGHT_LIMIT)


@transaction.atomic
def _insert(entrant: Entrant, checked: CheckedDraft, key: str | None, body_digest: str) -> Created:
    """The entrant's row is locked, so that two equal requests come one after the other."""
    Entrant.objects.select_for_update().get(pk=entrant.pk)
    earlier = submission_of_key(entrant=entrant, idempotency_key=key, body_digest=body_digest)
    if earlier:
        return Created(submission=earlier, created=False)
    if same := _same_content(entrant, checked):
        raise DuplicateContent(same)
    _refuse_over_quota(entrant)
    return Created(submission=_add(entrant, checked, key, body_digest), created=True)


@transaction.atomic
def submission_of_turn(*, entrant: Entrant, checked: CheckedDraft) -> Created:
    """The submission of a kernel that a model wrote; no quota, its run has its own limits.

    A kernel that this model handed in before is not evaluated again: its result counts for both.
    Where a fault of ours, a cancel or noise left it without one, it gets another job.
    """
    Entrant.objects.select_for_update().get(pk=entrant.pk)
    same = _same_content(entrant, checked)
    if same is None:
        return Created(submission=_add(entrant, checked, None, ""), created=True)
    same = Submission.objects.select_for_update(of=("self",)).get(pk=same.pk)
    if not same.is_open and _owner_may_rerun(same):
        _start_again(same, "a model handed it in again")
    return Created(submission=same, created=False)


def _add(entrant: Entrant, checked: CheckedDraft, key: str | None, body_digest: str) -> Submission:
    candidate = checked.candidate
    submission = Submission.objects.create(
        entrant=entrant,
        problem=checked.problem,
        target=candidate.target,
        language=candidate.language.value,
        binding=candidate.binding.value,
        name=checked.name,
        description=checked.description,
        candidate_json=canonical_json(candidate.model_dump(mode="json")),
        candidate_digest=candidate.digest,
        idempotency_key=key,
        key_digest=body_digest if key is not None else "",
        created_at=timezone.now(),
    )
    _start_job(submission, number=1, reason="")
    audit_append(actor=entrant.slug, action="submission.created", subject=submission.pk)
    return submission


def _same_content(entrant: Entrant, checked: CheckedDraft) -> Submission | None:
    return entrant.submissions.filter(
        problem=checked.problem,
        target=checked.candidate.target,
        candidate_digest=checked.candidate.digest,
    ).first()


def _refuse_over_quota(entrant: Entrant) -> None:
    quota = quota_of(entrant=entrant)
    if quota.is_reached:
        raise QuotaReached(
            seen=quota.seen, limit=quota.limit, retry_after_seconds=RETRY_AFTER_SECONDS
        )


def _start_job(submission: Submission, *, number: int, reason: str) -> Attempt:
    job = Job.objects.create(
        submission=submission, number=number, reason=reason, created_at=timezone.now()
    )
    return attempt_enqueue(job=job, lane=Job.Lane.BUILD)


@transaction.atomic
def submission_cancel(*, submission: Submission, user: User) -> Submission:
    """Stops what waits or runs; the worker hears of it at its next heartbeat. Twice is like once.

    Raises NotAllowed, NotPossible (it has ended otherwise).
    """
    _refuse_strangers(submission, user, "cancel")
    stopped = submission_stop(submission=submission, by=user.get_username())
    if not stopped and submission.state != Submission.State.CANCELLED:
        raise NotPossible(
            f"the submission is {submission.state}; only a queued or running one can be cancelled"
        )
    return submission  # asked again: the first answer was lost, or two tabs were open


def submission_stop(*, submission: Submission, by: str) -> bool:
    """Inside the caller's transaction; False where nothing waited or ran any more."""
    Submission.objects.select_for_update(of=("self",)).only("pk").get(pk=submission.pk)
    now = timezone.now()
    Attempt.objects.filter(job__submission=submission, state__in=Attempt.OPEN_STATES).update(
        state=Attempt.State.CANCELLED, ended_at=now, message=f"cancelled by {by}"
    )
    stopped = Job.objects.filter(submission=submission, state__in=Job.OPEN_STATES).update(
        state=Job.State.CANCELLED, ended_at=now
    )
    submission.refresh_from_db(fields=["state", "verdict"])
    if stopped:
        submission_settle(
            submission=submission, state=Submission.State.CANCELLED, message=f"Cancelled by {by}."
        )
        audit_append(actor=by, action="submission.cancelled", subject=submission.pk)
    return bool(stopped)


@transaction.atomic
def submission_rerun(*, submission: Submission, user: User, reason: str = "") -> Job:
    """A new job for the same kernel: owners after a fault of ours, a cancel or noise; staff always.

    Raises NotAllowed, NotPossible (a job is open).
    """
    _refuse_strangers(submission, user, "run again")
    submission = (
        Submission.objects.select_for_update(of=("self",))
        .select_related("entrant")
        .get(pk=submission.pk)
    )
    if submission.is_open:
        raise NotPossible(f"the submission is {submission.state} already; wait for it or cancel it")
    if not (user.is_staff or _owner_may_rerun(submission)):
        raise NotAllowed(
            f"the verdict is {submission.verdict}, which stands; owners can run again after a "
            "fault of ours, a cancel or INCONCLUSIVE. Change the kernel and submit it anew"
        )
    if not user.is_staff:
        _refuse_over_quota(submission.entrant)
    by = user.get_username()
    attempt = _start_again(submission, reason or f"run again by {by}")
    audit_append(actor=by, action="submission.rerun", subject=submission.pk)
    return attempt.job


def _start_again(submission: Submission, reason: str) -> Attempt:
    number = submission.jobs.aggregate(last=Max("number"))["last"] + 1
    Submission.objects.filter(pk=submission.pk).update(
        state=Submission.State.QUEUED, verdict=None, message="", ended_at=None
    )
    return _start_job(submission, number=number, reason=reason)


def _owner_may_rerun(submission: Submission) -> bool:
    ended_without_verdict = submission.state in (
        Submission.State.FAULTED,
        Submission.State.CANCELLED,
    )
    return ended_without_verdict or submission.verdict == Verdict.INCONCLUSIVE.value


def _refuse_strangers(submission: Submission, user: User, verb: str) -> None:
    if not (user.is_staff or submission.entrant.user_id == user.pk):
        raise NotAllowed(
            f"only {submission.entrant.display_name} or staff can {verb} this submission"
        )
