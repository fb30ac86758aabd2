"""What a worker and the site say to each other over HTTP, below `/api/v1/worker/`.

| call | body | answer |
| --- | --- | --- |
| POST claim | ClaimRequest | 200 JobOrder, 204 nothing to do, 409 taken or ended |
| POST attempts/<id>/heartbeat | Heartbeat | 200 HeartbeatReply, 409 stale fence |
| POST attempts/<id>/stages | StagePost | 200, again 200 when repeated, 409 stale fence |
| PUT artifacts/<sha256> | raw bytes | 201 stored, 200 known, 422 digest differs |
| GET artifacts/<sha256> | | 200 raw bytes, 404 |
| POST attempts/<id>/complete | Completion | 200, again 200 when repeated, 409 stale fence |
| POST hello | WorkerHello | 200 |

Artifact calls carry the attempt and its fence in the headers `PTXBoard-Attempt` and
`PTXBoard-Fence`. All carry `Authorization: Worker <token>`.
"""

from enum import StrEnum

from pydantic import Field, SerializeAsAny

from evaluator.records.base import Record
from evaluator.records.evaluation import Environment, StageResult
from evaluator.records.verdicts import Lane

LEASE_SECONDS = 60
HEARTBEAT_SECONDS = 15
MAX_ATTEMPTS = 3
ATTEMPT_HEADER = "PTXBoard-Attempt"
FENCE_HEADER = "PTXBoard-Fence"


class WorkerState(StrEnum):
    IDLE = "idle"
    BUSY = "busy"
    UNFIT = "unfit"


class WorkerHello(Record):
    """Who a worker is and what it can run; sent at the start and with every claim."""

    name: str = Field(min_length=1, max_length=100)
    lanes: tuple[Lane, ...]
    targets: tuple[str, ...]
    state: WorkerState = WorkerState.IDLE
    environment: Environment | None = None
    note: str = ""


class ClaimRequest(Record):
    """`attempt` as the doorbell named it, or None to take the oldest that this worker can run."""

    worker: WorkerHello
    attempt: str | None = None


class Heartbeat(Record):
    fence: str


class HeartbeatReply(Record):
    cancel: bool
    lease_seconds: int


class StagePost(Record):
    fence: str
    result: SerializeAsAny[StageResult]  # type: ignore[type-arg]


class Outcome(StrEnum):
    """`finished`: the stages tell the verdict; `faulted`: ours; `released`: handed back unrun."""

    FINISHED = "finished"
    FAULTED = "faulted"
    RELEASED = "released"


class Completion(Record):
    fence: str
    outcome: Outcome
    environment: Environment
    message: str = ""
