"""An attempt's life up to its end: queued, claimed by one worker, kept alive by heartbeats."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from evaluator.records.evaluation import AnyStageResult, JobOrder
from evaluator.records.summary import LANE_OF, planned_stages
from evaluator.records.verdicts import Stage
from evaluator.records.worker_api import (
    LEASE_SECONDS,
    Heartbeat,
    HeartbeatReply,
    WorkerHello,
    WorkerState,
)
from evaluator.targets import TARGETS
from leaderboard.models import Attempt, Job, StageRecord, Submission, Worker
from leaderboard.refusals import AttemptTaken, AttemptUnknown, StaleFence
from leaderboard.services.doorbell import ring
from leaderboard.services.workers import is_passed_over

CLAIM_TRIES = 5
CLAIM_LOOK = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """After a fault nobody claims for `seconds`; then `worker` goes after others as long again."""

    seconds: float
    worker: str


def attempt_enqueue(*, job: Job, lane: str, delay: Delay | None = None) -> Attempt:
    """A queued attempt whose doorbell rings once the transaction has committed.

    With a delay it rings later: the reconciler sees that no message was sent yet.
    """
    now = timezone.now()
    last = job.attempts.filter(lane=lane).aggregate(last=Max("number"))["last"] or 0
    attempt = Attempt.objects.create(
        job=job,
        lane=lane,
        target=job.submission.target,
        number=last + 1,
        created_at=now,
        **_waiting(delay, now),
    )
    Job.objects.filter(pk=job.pk).update(lane=lane)
    if delay is None:
        transaction.on_commit(lambda: ring(attempt), robust=True)
    return attempt


def _waiting(delay: Delay | None, now: datetime) -> dict[str, Any]:
    if delay is None:
        return {}
    not_before = now + timedelta(seconds=delay.seconds)
    return {
        "not_before": not_before,
        "avoided": delay.worker,
        "avoided_until": not_before + timedelta(seconds=delay.seconds),
    }


def attempt_claim(*, hello: WorkerHello, attempt_id: str | None) -> JobOrder | None:
    """The whole job for the named attempt or the oldest fitting one; None if nothing waits.

    After a fault of ours nobody gets the job until the delay is over, and the worker that faulted
    is passed over for as long again while another worker that could take it is online.
    Raises AttemptUnknown, AttemptTaken (taken, ended, delayed, or it does not fit).
    """
    if hello.state is WorkerState.UNFIT:
        return None
    if attempt_id is not None:
        return _claim_named(hello, attempt_id)
    lanes, targets = [lane.value for lane in hello.lanes], list(hello.targets)
    now = timezone.now()
    waiting = Attempt.objects.runnable_by(lanes, targets, now)[:CLAIM_LOOK]
    mine = [one for one in waiting if not is_passed_over(one, hello.name, now)]
    for attempt in mine[:CLAIM_TRIES]:
        if order := _take(attempt, hello.name):
            return order
    return None


def _claim_named(hello: WorkerHello, attempt_id: str) -> JobOrder:
    attempt = attempt_find(attempt_id)
    fits = attempt.lane in hello.lanes and attempt.target in hello.targets
    if not fits:
        raise AttemptTaken(
            f"attempt {attempt.pk} needs lane {attempt.lane!r} and target {attempt.target!r}; "
            f"worker {hello.name!r} offers {[*hello.lanes]} and {[*hello.targets]}"
        )
    _refuse_early(attempt, hello.name)
    if order := _take(attempt, hello.name):
        return order
    attempt.refresh_from_db()
    holder = f" by {attempt.worker}" if attempt.worker else ""
    raise AttemptTaken(f"attempt {attempt.pk} is {attempt.state}{holder}, not QUEUED")


def _refuse_early(attempt: Attempt, worker: str) -> None:
    """Raises AttemptTaken. The message is spent, so the reconciler rings anew, for others too."""
    now = timezone.now()
    if attempt.state != Attempt.State.QUEUED:
        return
    if not attempt.is_due(now):
        reason = f"waits until {attempt.not_before:%H:%M:%S} UTC after a fault of ours"
    elif is_passed_over(attempt, worker, now):
        reason = f"goes to another worker first: {worker!r} faulted on this job just now"
    else:
        return
    Attempt.objects.filter(pk=attempt.pk).update(doorbell_at=None)
    raise AttemptTaken(f"attempt {attempt.pk} {reason}")


def attempt_find(attempt_id: str) -> Attempt:
    """Raises AttemptUnknown, also for text that is no identifier."""
    try:
        return Attempt.objects.get(pk=uuid.UUID(attempt_id))
    except (ValueError, AttributeError, Attempt.DoesNotExist):
        raise AttemptUnknown(f"there is no attempt {str(attempt_id)[:60]!r}") from None


@transaction.atomic
def _take(attempt: Attempt, worker: str) -> JobOrder | None:
    """One conditional UPDATE decides between workers; None for the one that came late."""
    lock_submission(attempt)
    now = timezone.now()
    won = Attempt.objects.filter(pk=attempt.pk, state=Attempt.State.QUEUED).update(
        state=Attempt.State.RUNNING,
        fence=uuid.uuid4(),
        lease_until=now + timedelta(seconds=LEASE_SECONDS),
        worker=worker,
        claimed_at=now,
        current_stage=stages_of(attempt.lane, attempt.target)[0].value,
    )
    if not won:
        return None
    Job.objects.filter(pk=attempt.job_id).update(state=Job.State.RUNNING)
    Submission.objects.filter(jobs=attempt.job_id).update(state=Submission.State.RUNNING)
    taken = Attempt.objects.select_related("job__submission__problem").get(pk=attempt.pk)
    return job_order(taken)


def lock_submission(attempt: Attempt) -> None:
    """First of all in every transaction that starts, moves or ends a submission's work.

    Then a cancel cannot come between the end of a build and the start of the run that follows it,
    and rows are locked in one order, so that nobody waits for one who waits for him.
    """
    Submission.objects.select_for_update(of=("self",)).only("pk").get(jobs=attempt.job_id)


def stages_of(lane: str, target: str) -> tuple[Stage, ...]:
    """The stages that an attempt of this lane and target reports, in order."""
    planned = planned_stages(is_gpu=TARGETS[target].is_gpu)
    return tuple(stage for stage in planned if LANE_OF[stage].value == lane)


def job_order(attempt: Attempt) -> JobOrder:
    submission = attempt.job.submission
    results = results_before(attempt)
    return JobOrder(
        attempt=str(attempt.pk),
        job=str(attempt.job_id),
        fence=str(attempt.fence),
        lane=attempt.lane,
        number=attempt.number,
        lease_seconds=LEASE_SECONDS,
        candidate=submission.candidate,
        problem=submission.problem.record,
        build_artifacts=tuple(part for result in results for part in result.artifacts),
        stages=results,
    )


def records_before(attempt: Attempt) -> list[StageRecord]:
    """The build's records for an attempt of the GPU lane; none for a build."""
    if attempt.lane == Job.Lane.BUILD:
        return []
    return list(
        StageRecord.objects.filter(
            attempt__job_id=attempt.job_id,
            attempt__lane=Job.Lane.BUILD,
            attempt__state=Attempt.State.FINISHED,
        ).order_by("id")
    )


def results_before(attempt: Attempt) -> tuple[AnyStageResult, ...]:
    return tuple(record.result for record in records_before(attempt))


def check_fence(attempt: Attempt, fence: str) -> None:
    """Raises StaleFence where the attempt was given to another or was never claimed."""
    if attempt.fence is None or str(attempt.fence) != fence:
        raise StaleFence(
            f"the fence does not match attempt {attempt.pk}, which is {attempt.state}; "
            "stop, its results are not wanted"
        )


def attempt_heartbeat(*, attempt_id: str, beat: Heartbeat) -> HeartbeatReply:
    """Lengthens the lease; says `cancel` once the submission was cancelled.

    Raises AttemptUnknown, StaleFence.
    """
    attempt = attempt_find(attempt_id)
    check_fence(attempt, beat.fence)
    if attempt.state == Attempt.State.CANCELLED:
        return HeartbeatReply(cancel=True, lease_seconds=LEASE_SECONDS)
    now = timezone.now()
    alive = Attempt.objects.filter(
        pk=attempt.pk, fence=attempt.fence, state=Attempt.State.RUNNING
    ).update(lease_until=now + timedelta(seconds=LEASE_SECONDS))
    if not alive:
        attempt.refresh_from_db()
        if attempt.state == Attempt.State.CANCELLED:
            return HeartbeatReply(cancel=True, lease_seconds=LEASE_SECONDS)
        raise StaleFence(f"attempt {attempt.pk} is {attempt.state}; its lease ended")
    Worker.objects.filter(name=attempt.worker).update(last_seen=now)
    return HeartbeatReply(cancel=False, lease_seconds=LEASE_SECONDS)
