"""Test of a connection: one tiny request, and what came of it in words.

It holds a thread of the site while it lasts, so few may last at once: else slow endpoints would
keep pages from people and heartbeats from workers.
"""

import threading
import time
from dataclasses import dataclass

from evaluator.agent.messages import Message
from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.parameters import Parameters
from leaderboard.endpoints.replies import Reply

PROBE_TOKENS = 16
AT_ONCE = 2  # in each process of the site
LIMITS = Limits(total_seconds=60, idle_seconds=45, reply_bytes=1 << 20)
_QUESTION = Message(role="user", content="Answer with the word ready.")
_PLACES = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """`kind` is None where the endpoint answered; `message` is for people."""

    ok: bool
    message: str
    kind: ErrorKind | None = None
    model: str | None = None
    seconds: float = 0.0


def probe(endpoint: Endpoint, parameters: Parameters) -> ProbeResult:
    """Ask for PROBE_TOKENS tokens, more only where a thinking budget needs it.

    The run's parameters go along, so that one that the endpoint refuses shows here. Raises nothing
    but ImproperlyConfigured, for settings of the site that cannot be read.
    """
    if not _PLACES.acquire(blocking=False):
        busy = f"{AT_ONCE} connections are being tested already; try again in a minute"
        return ProbeResult(ok=False, message=busy, kind=ErrorKind.RATE_LIMIT)
    try:
        return _probe(endpoint, parameters)
    finally:
        _PLACES.release()


def _probe(endpoint: Endpoint, parameters: Parameters) -> ProbeResult:
    thinking = parameters.thinking.budget_tokens if parameters.thinking else None
    max_tokens = (thinking or 0) + PROBE_TOKENS
    tiny = parameters.model_copy(update={"max_tokens": max_tokens})
    start = time.monotonic()
    try:
        reply = complete(endpoint, [_QUESTION], tiny, limits=LIMITS)
    except EndpointError as error:
        seconds = time.monotonic() - start
        return ProbeResult(ok=False, message=error.message, kind=error.kind, seconds=seconds)
    seconds = time.monotonic() - start
    message = f"{_said(reply)} after {seconds:.1f} s"
    return ProbeResult(ok=True, message=message, model=reply.model, seconds=seconds)


def _said(reply: Reply) -> str:
    """What the endpoint answered; thinking may well have used the few tokens up."""
    model = reply.model or "the model"
    if text := " ".join(reply.text.split())[:60]:
        return f"{model} answered {text!r}"
    if reply.reasoning:
        return f"{model} answered with reasoning only, which a test's few tokens do not outlast,"
    return f"{model} answered without text ({reply.finish_reason or 'no reason given'})"
