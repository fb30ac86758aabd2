"""The one module of the site that opens outgoing connections."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one call: seconds to connect, between two bytes, and in all; bytes of the reply."""

    connect_seconds: float = 10
    idle_seconds: float = 300
    total_seconds: float
    reply_bytes: int = 16 << 20
