"""Workers as the page shows them; whether one is online follows from when it was last heard."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from leaderboard.models import Worker
from leaderboard.views.presenters.words import Badge

OFFLINE = Badge(word="Offline", icon="dash", tone="idle", title="Not heard from for a minute.")
_STATES = {
    Worker.State.IDLE: Badge(word="Idle", icon="check", tone="pass", title="Waiting for work."),
    Worker.State.BUSY: Badge(word="Busy", icon="spin", tone="live", title="Running an attempt."),
    Worker.State.UNFIT: Badge(
        word="Unfit", icon="tool", tone="ours", title="Took itself out of service."
    ),
}
ENVIRONMENT_NAMES = (
    ("device_name", "Device"),
    ("driver", "Driver"),
    ("cuda_runtime", "CUDA"),
    ("compiler", "Compiler"),
    ("cupti", "CUPTI"),
    ("nsight_compute", "Nsight Compute"),
    ("compute_sanitizer", "compute-sanitizer"),
    ("cuobjdump", "cuobjdump"),
    ("torch", "torch"),
    ("cudnn", "cuDNN"),
    ("cublas", "cuBLAS"),
    ("operating_system", "System"),
    ("python", "Python"),
    ("sandbox", "Sandbox"),
    ("harness_version", "Harness"),
    ("device_uuid", "Device UUID"),
    ("hostname_digest", "Host digest"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    worker: Worker
    badge: Badge
    is_online: bool
    environment: tuple[tuple[str, str | None], ...]
    device: str | None
    unsafe: bool


def worker_views(workers: Iterable[Worker], now: datetime) -> tuple[WorkerView, ...]:
    return tuple(_worker_view(worker, now) for worker in workers)


def _worker_view(worker: Worker, now: datetime) -> WorkerView:
    environment, online = worker.environment or {}, worker.is_online(now)
    return WorkerView(
        worker=worker,
        badge=_STATES[Worker.State(worker.state)] if online else OFFLINE,
        is_online=online,
        environment=environment_rows(environment),
        device=environment.get("device_name"),
        unsafe=bool(environment.get("unsafe_no_sandbox")),
    )


def environment_rows(environment: dict[str, object]) -> tuple[tuple[str, str | None], ...]:
    """Every part by name, in one order everywhere; None where the machine has no such part."""
    if not environment:
        return ()
    return tuple(
        (title, str(environment[key]) if environment.get(key) is not None else None)
        for key, title in ENVIRONMENT_NAMES
    )
