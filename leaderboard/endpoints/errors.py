"""What can go wrong with a call to a model endpoint, sorted by what the caller must do next."""

from enum import StrEnum


class ErrorKind(StrEnum):
    UNREACHABLE = "unreachable"
    REFUSED_ADDRESS = "refused_address"
    TIMEOUT = "timeout"
    AUTH = "auth"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    CONTEXT_EXCEEDED = "context_exceeded"
    BAD_REQUEST = "bad_request"
    BAD_REPLY = "bad_reply"
    TOO_LARGE = "too_large"


_RETRYABLE = frozenset(
    {
        ErrorKind.UNREACHABLE,
        ErrorKind.TIMEOUT,
        ErrorKind.RATE_LIMIT,
        ErrorKind.SERVER,
        ErrorKind.BAD_REPLY,
    }
)


class EndpointError(Exception):
    """One failed call. `message` says what was seen and what to do, and never holds the key.

    `retry_after_seconds` is the endpoint's own wish, None where it said nothing. `final` marks an
    error that another try cannot mend although its kind usually passes: an exhausted quota, a
    redirect, a pause of a day (which still says how long).
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.final = final

    def __str__(self) -> str:
        return self.message

    @property
    def is_retryable(self) -> bool:
        return self.kind in _RETRYABLE and not self.final
