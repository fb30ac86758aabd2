"""Test of a connection: one tiny request, and what came of it in words."""

from dataclasses import dataclass

from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import ErrorKind
from leaderboard.endpoints.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """`kind` is None where the endpoint answered; `message` is for people."""

    ok: bool
    message: str
    kind: ErrorKind | None = None
    model: str | None = None
    seconds: float = 0.0


def probe(endpoint: Endpoint, parameters: Parameters) -> ProbeResult:
    """Ask for at most 16 tokens (more only where a thinking budget needs it). Never raises."""
    raise NotImplementedError
