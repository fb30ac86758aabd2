"""The worker API as a client sees it; see `evaluator.records.worker_api` for the contract."""

from types import TracebackType
from typing import Self

import httpx2

from evaluator.records.base import Record
from evaluator.records.evaluation import JobOrder
from evaluator.records.worker_api import (
    ATTEMPT_HEADER,
    FENCE_HEADER,
    ClaimRequest,
    Heartbeat,
    HeartbeatReply,
    WorkerHello,
)

TIMEOUT_SECONDS = 30.0
# Shorter than gunicorn's 2 s, so that a request never goes out on a connection about to be closed.
KEEPALIVE_SECONDS = 1.0


class SiteAway(Exception):
    """The site did not answer, or answered 5xx or 429: nothing was decided, try again."""


class StaleFence(Exception):
    """The attempt is no longer ours: its lease ran out, or it was cancelled or finished."""


class SiteRefused(Exception):
    """The site understood the request and refuses it; trying again will not help."""


class SiteClient:
    """One connection pool to one site, with one worker token.

    Every method raises SiteAway (retry), StaleFence (stop this attempt) or SiteRefused (a fault:
    wrong token, wrong scope, a record that the site does not accept).
    """

    def __init__(self, *, site_url: str, token: str, transport: httpx2.BaseTransport | None = None):
        self.site_url = site_url.rstrip("/")
        self._http = httpx2.Client(
            base_url=f"{self.site_url}/api/v1/worker/",
            headers={"Authorization": f"Worker {token}"},
            timeout=TIMEOUT_SECONDS,
            limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
            transport=transport,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def hello(self, worker: WorkerHello) -> None:
        self._post("hello", worker)

    def claim(self, worker: WorkerHello, attempt: str | None = None) -> JobOrder | None:
        """The whole job, or None when there is nothing to do or another worker was faster."""
        try:
            answer = self._post("claim", ClaimRequest(worker=worker, attempt=attempt))
        except StaleFence:
            return None
        if answer.status_code == httpx2.codes.NO_CONTENT:
            return None
        return JobOrder.from_json(answer.content)

    def heartbeat(self, attempt: str, beat: Heartbeat) -> HeartbeatReply:
        answer = self._post(f"attempts/{attempt}/heartbeat", beat)
        return HeartbeatReply.from_json(answer.content)

    def post(self, path: str, body: str) -> None:
        """Deliver a stage or a completion that was written down before as JSON text."""
        headers = {"Content-Type": "application/json"}
        self._send("POST", path, content=body.encode(), headers=headers)

    def put_artifact(self, sha256: str, data: bytes, *, attempt: str, fence: str) -> None:
        headers = {
            ATTEMPT_HEADER: attempt,
            FENCE_HEADER: fence,
            "Content-Type": "application/octet-stream",
        }
        self._send("PUT", f"artifacts/{sha256}", content=data, headers=headers)

    def get_artifact(self, sha256: str, *, attempt: str, fence: str) -> bytes:
        headers = {ATTEMPT_HEADER: attempt, FENCE_HEADER: fence}
        return self._send("GET", f"artifacts/{sha256}", headers=headers).content

    def _post(self, path: str, record: Record) -> httpx2.Response:
        headers = {"Content-Type": "application/json"}
        return self._send("POST", path, content=record.to_json().encode(), headers=headers)

    def _send(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str],
        content: bytes | None = None,
    ) -> httpx2.Response:
        try:
            answer = self._http.request(method, path, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise SiteAway(f"{self.site_url}: {type(error).__name__}: {error}") from error
        return _sorted_by_blame(answer)


def _sorted_by_blame(answer: httpx2.Response) -> httpx2.Response:
    if answer.is_success:
        return answer
    seen = f"{answer.request.method} {answer.request.url.path}: {answer.status_code}"
    detail = f"{seen} {answer.text[:500]}"
    if answer.status_code == httpx2.codes.CONFLICT:
        raise StaleFence(detail)
    if answer.is_server_error or answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
        raise SiteAway(detail)
    raise SiteRefused(detail)
