"""The end of an attempt: the next lane, an evaluation, another try, or a fault of ours."""

import logging

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from evaluator.records.evaluation import Environment
from evaluator.records.summary import Summary, planned_stages, summarise
from evaluator.records.verdicts import Lane
from evaluator.records.worker_api import MAX_ATTEMPTS, Completion, Outcome
from leaderboard.models import Attempt, Job, StageRecord, Submission
from leaderboard.refusals import StaleFence
from leaderboard.services.attempts import (
    Delay,
    attempt_enqueue,
    check_fence,
    records_before,
    stages_of,
)
from leaderboard.services.evaluations import evaluation_record
from leaderboard.services.settling import submission_settle
from leaderboard.services.source_text import storable
from leaderboard.services.stages import lock_attempt

log = logging.getLogger(__name__)

MAX_RELEASES = 10
ENDED_WITH_FENCE = (
    Attempt.State.FINISHED,
    Attempt.State.FAULTED,
    Attempt.State.RELEASED,
    Attempt.State.CANCELLED,
)


@transaction.atomic
def attempt_complete(*, attempt_id: str, completion: Completion) -> Attempt:
    """One transaction, once: the same call again changes nothing and answers alike.

    Raises AttemptUnknown, StaleFence (the lease was given to another attempt).
    """
    attempt = lock_attempt(attempt_id)
    check_fence(attempt, completion.fence)
    if attempt.state in ENDED_WITH_FENCE:
        return attempt
    if attempt.state != Attempt.State.RUNNING:
        raise StaleFence(f"attempt {attempt.pk} is {attempt.state}; its results are not wanted")
    attempt.environment = completion.environment.model_dump(mode="json")
    if completion.outcome is Outcome.RELEASED:
        attempt_end(attempt, Attempt.State.RELEASED, completion.message)
        _again_after_release(attempt)
    elif completion.outcome is Outcome.FAULTED:
        attempt_end(attempt, Attempt.State.FAULTED, completion.message)
        again_or_fault(attempt)
    else:
        _finish(attempt, completion.environment)
    return attempt


def attempt_end(attempt: Attempt, state: str, message: str = "") -> None:
    attempt.state = state
    attempt.message = storable(message)
    attempt.ended_at = timezone.now()
    attempt.current_stage = ""
    attempt.save(update_fields=["state", "message", "ended_at", "environment", "current_stage"])


def _finish(attempt: Attempt, environment: Environment) -> None:
    records = [*records_before(attempt), *attempt.stage_records.order_by("id")]
    summary = summarise(
        [record.result for record in records],
        planned_stages(is_gpu=attempt.job.submission.target_record.is_gpu),
    )
    mine = stages_of(attempt.lane, attempt.target)
    missing = [stage.value for stage in mine if stage in summary.not_reached]
    if summary.verdict is None and missing:
        reason = f"the worker finished without the stages {', '.join(missing)}"
        attempt_end(attempt, Attempt.State.FAULTED, reason)
        again_or_fault(attempt)
        return
    attempt_end(attempt, Attempt.State.FINISHED)
    if summary.verdict is None:
        attempt_enqueue(job=attempt.job, lane=Lane.GPU.value)
        _requeue(attempt.job)
        return
    _evaluate(attempt, records, summary, environment)


def _evaluate(
    attempt: Attempt, records: list[StageRecord], summary: Summary, environment: Environment
) -> None:
    evaluation_record(attempt=attempt, records=records, summary=summary, environment=environment)
    job = attempt.job
    message = storable(summary.message)
    job.state, job.message, job.ended_at = Job.State.DONE, message, timezone.now()
    job.save(update_fields=["state", "message", "ended_at"])
    submission_settle(submission=job.submission, state=Submission.State.DONE, message=message)


def again_or_fault(attempt: Attempt) -> None:
    """Another attempt of the lane after a delay, or, after MAX_ATTEMPTS of ours, the job's end."""
    failed = attempt.job.attempts.filter(lane=attempt.lane, state__in=Attempt.OUR_FAULTS).order_by(
        "number"
    )
    if len(failed) < MAX_ATTEMPTS:
        delays = settings.PTXBOARD_RETRY_DELAYS_SECONDS
        seconds = delays[min(len(failed), len(delays)) - 1]
        delay = Delay(seconds=seconds, worker=attempt.worker)
        attempt_enqueue(job=attempt.job, lane=attempt.lane, delay=delay)
        _requeue(attempt.job)
        return
    job = attempt.job
    message = (
        f"INFRA_ERROR: our {attempt.lane} worker failed {len(failed)} times "
        f"({_reasons(list(failed))}). This is our fault, says nothing about the kernel and counts "
        "against no quota; you can run it again."
    )
    log.error("job %s of submission %s: %s", job.pk, job.submission_id, message)
    job.state, job.message, job.ended_at = Job.State.FAULTED, message, timezone.now()
    job.save(update_fields=["state", "message", "ended_at"])
    submission_settle(submission=job.submission, state=Submission.State.FAULTED, message=message)


def _reasons(attempts: list[Attempt]) -> str:
    reasons = dict.fromkeys(attempt.message.splitlines()[0][:200] for attempt in attempts)
    return "; ".join(reason for reason in reasons if reason) or "no reason given"


def _again_after_release(attempt: Attempt) -> None:
    """Handed back unrun: queued again at once, unless workers do nothing else."""
    released = attempt.job.attempts.filter(lane=attempt.lane, state=Attempt.State.RELEASED).count()
    if released >= MAX_RELEASES:
        reason = f"handed back {released} times: {attempt.message}"
        attempt_end(attempt, Attempt.State.FAULTED, reason)
        again_or_fault(attempt)
        return
    attempt_enqueue(job=attempt.job, lane=attempt.lane)
    _requeue(attempt.job)


def _requeue(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
    Submission.objects.filter(pk=job.submission_id).update(state=Submission.State.QUEUED)
