"""Workers as they report themselves, and who could run what."""

from datetime import datetime

from django.db.models import Count
from django.utils import timezone

from evaluator.records.worker_api import WorkerHello
from leaderboard.models import ApiToken, Attempt, Worker
from leaderboard.refusals import NameTaken
from leaderboard.services.doorbell import is_due, ring

RING_AT_MOST = 10


def worker_seen(*, hello: WorkerHello, token: ApiToken) -> Worker:
    """Keep what the worker says of itself. Raises NameTaken: nobody speaks for another's worker."""
    now = timezone.now()
    _refuse_taken_name(hello.name, token, now)
    environment = hello.environment.model_dump(mode="json") if hello.environment else None
    said = {
        "token_name": token.worker_name,
        "lanes": [lane.value for lane in hello.lanes],
        "targets": list(hello.targets),
        "state": hello.state.value,
        "note": hello.note,
        "environment": environment,
        "last_seen": now,
    }
    worker, _ = Worker.objects.update_or_create(
        name=hello.name, defaults=said, create_defaults={**said, "first_seen": now}
    )
    return worker


def _refuse_taken_name(name: str, token: ApiToken, now: datetime) -> None:
    """A name is free again once its worker was silent for a minute."""
    holder = Worker.objects.online(now).filter(name=name).exclude(token_name=token.worker_name)
    if holder.exists():
        raise NameTaken(
            f"a worker {name!r} with another token is online; start this one with another --name"
        )


def worker_hello(*, hello: WorkerHello, token: ApiToken) -> Worker:
    """A worker says that it lives: work whose message is old or lost is rung again for it."""
    worker = worker_seen(hello=hello, token=token)
    if worker.state != Worker.State.UNFIT:
        now = timezone.now()
        waiting = Attempt.objects.runnable_by(worker.lanes, worker.targets, now)[:RING_AT_MOST]
        for attempt in waiting:
            if is_due(attempt, now, soon=True) and not is_passed_over(attempt, worker.name, now):
                ring(attempt)
    return worker


def attempts_lost(*, since: datetime) -> dict[str, int]:
    """Attempts without an end by worker: where different jobs die on one, it is the suspect.

    A worker that is killed and starts anew says so itself, and then its lease does not lapse.
    """
    rows = (
        Attempt.objects.filter(state__in=Attempt.OUR_FAULTS, ended_at__gte=since)
        .values_list("worker")
        .annotate(count=Count("id"))
        .order_by()
    )
    return dict(rows)


def workers_able(*, lane: str, target: str) -> int:
    """How many workers that were seen within the last minute could take this."""
    online = Worker.objects.online(timezone.now())
    return sum(worker.can_run(lane, target) for worker in online)


def is_passed_over(attempt: Attempt, worker: str, now: datetime) -> bool:
    """The worker faulted on this job just now, and another one that could take it is online."""
    if not attempt.avoids(worker, now):
        return False
    others = Worker.objects.online(now).exclude(name=worker)
    return any(other.can_run(attempt.lane, attempt.target) for other in others)
