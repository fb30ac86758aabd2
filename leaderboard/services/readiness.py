"""Whether the site can do its work: database, broker, and how long work has waited."""

import logging
from dataclasses import asdict, dataclass
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, Min
from django.utils import timezone
from kombu.exceptions import OperationalError

from leaderboard.models import Attempt, DutyRun
from leaderboard.services.workers import workers_able
from webapp.celery import app

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """oldest_queued_seconds is None when nothing waits that an online worker could take."""

    database: str
    broker: str
    oldest_queued_seconds: float | None
    queued_count: int | None
    last_reap_seconds: float | None

    @property
    def ready(self) -> bool:
        return self.database == "ok" and self.broker == "ok"

    def to_json(self) -> dict[str, Any]:
        return {"status": "ready" if self.ready else "not ready", **asdict(self)}


def readiness() -> Readiness:
    try:
        oldest, count, reaped = _ages()
        database = "ok"
    except DatabaseError as error:
        log.error("readyz: the database does not answer: %s", error)
        oldest, count, reaped, database = None, None, None, "does not answer"
    return Readiness(
        database=database,
        broker=_broker(),
        oldest_queued_seconds=oldest,
        queued_count=count,
        last_reap_seconds=reaped,
    )


def _ages() -> tuple[float | None, int, float | None]:
    now = timezone.now()
    groups = (
        Attempt.objects.queued()
        .order_by()
        .values_list("lane", "target")
        .annotate(count=Count("id"), oldest=Min("created_at"))
    )
    queued = list(groups)
    served = [at for lane, target, _, at in queued if workers_able(lane=lane, target=target)]
    oldest = min(served, default=None)
    reaped = DutyRun.objects.filter(name="reap").values_list("ran_at", flat=True).first()
    return (
        (now - oldest).total_seconds() if oldest else None,
        sum(count for _, _, count, _ in queued),
        (now - reaped).total_seconds() if reaped else None,
    )


def _broker() -> str:
    try:
        with app.connection_for_write(transport_options=_hasty()) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=2)
    except (OperationalError, OSError) as error:
        log.error("readyz: the broker does not answer: %s", error)
        return "does not answer"
    return "ok"


def _hasty() -> dict[str, Any]:
    options = dict(app.conf.broker_transport_options)
    if str(app.conf.broker_url).startswith("redis"):
        options.update(socket_connect_timeout=2, socket_timeout=2)
    return options
