"""Which kind of error an endpoint's answer is: by status, by its own codes, and by wording.

Servers agree on status codes and on little else, so an overflowing context is known by what OpenAI,
Anthropic, vLLM, SGLang, llama.cpp, TGI, Gemini and others write. The endpoint's words go into the
message, at most EXCERPT_CHARS of them, and into nothing else.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from leaderboard.endpoints.errors import EndpointError, ErrorKind

EXCERPT_CHARS = 500
MAX_RETRY_AFTER_SECONDS = 900.0

_OVERFLOW = re.compile(
    r"context_length_exceeded|maximum context length|context[ _]length|context window|context size"
    r"|exceeds? (the )?context|exceed_context_size|context limit"
    r"|(prompt|input|request) (is|was) too (long|large)|prompt_too_long|prompt[^.]{0,40} too long"
    r"|max_(completion_|output_|new_)?tokens must be at least 1, got -"
    r"|reduce the length|too many (input )?tokens|maximum number of tokens allowed"
    r"|inputs?`? tokens \+ `?max_new_tokens|longer than the (model|maximum)|max_prompt_tokens"
    r"|model_context_window_exceeded|maximum (input|prompt|sequence) length",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|quota (is )?exhausted|billing|credit balance"
    r"|insufficient (credits?|balance|funds)|out of credits",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model[^.]{0,200}(does not exist|not (be )?found|is not a valid model|unknown)"
    r"|(unknown|invalid|no such) model|not a valid model|server is pinned to",
    re.IGNORECASE,
)
_NO_KEY = re.compile(
    r"invalid_api_key|(api|access)[ _]key[^.]{0,40}(not valid|invalid|incorrect|missing|expired)"
    r"|(invalid|incorrect|missing)[^.]{0,20} api[ _-]?key",
    re.IGNORECASE,
)
_BY_CODE = {
    "api_error": ErrorKind.SERVER,
    "authentication_error": ErrorKind.AUTH,
    "internal_error": ErrorKind.SERVER,
    "internal_server_error": ErrorKind.SERVER,
    "invalid_api_key": ErrorKind.AUTH,
    "invalid_request_error": ErrorKind.BAD_REQUEST,
    "model_not_found": ErrorKind.UNKNOWN_MODEL,
    "not_found_error": ErrorKind.UNKNOWN_MODEL,
    "overloaded_error": ErrorKind.SERVER,
    "permission_error": ErrorKind.AUTH,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "server_error": ErrorKind.SERVER,
    "timeout_error": ErrorKind.TIMEOUT,
}
_BY_STATUS = {
    401: ErrorKind.AUTH,
    402: ErrorKind.RATE_LIMIT,
    403: ErrorKind.AUTH,
    404: ErrorKind.UNKNOWN_MODEL,
    408: ErrorKind.TIMEOUT,
    409: ErrorKind.SERVER,
    425: ErrorKind.SERVER,
    429: ErrorKind.RATE_LIMIT,
}
_NEXT = {
    ErrorKind.AUTH: "give a key that this endpoint and model accept",
    ErrorKind.UNKNOWN_MODEL: "check the model's name and the base URL",
    ErrorKind.RATE_LIMIT: "the same call may be made later",
    ErrorKind.SERVER: "the same call may be made again",
    ErrorKind.TIMEOUT: "the same call may be made again",
    ErrorKind.CONTEXT_EXCEEDED: "the conversation is longer than the model's context",
    ErrorKind.BAD_REQUEST: "change the parameters that it names",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An endpoint's error as it came: `status` is None for one inside a stream."""

    status: int | None
    text: str
    codes: frozenset[str] = frozenset()

    @classmethod
    def read(cls, status: int | None, body: str) -> "Problem":
        """From the text of a reply: JSON in any of the usual shapes, HTML, or nothing."""
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return cls(status=status, text=body)
        return cls.of_json(status, value)

    @classmethod
    def of_json(cls, status: int | None, value: Any) -> "Problem":
        value = value[0] if isinstance(value, list) and value else value
        error = value.get("error", value) if isinstance(value, dict) else value
        if not isinstance(error, dict):
            return cls(status=status, text=str(error))
        words = [error.get(name) for name in ("code", "type", "status")]
        codes = frozenset(word.lower() for word in words if isinstance(word, str))
        number = error.get("code")
        if status is None and isinstance(number, int) and 400 <= number < 600:
            status = number
        message = error.get("message") or error.get("detail") or json.dumps(value)
        return cls(status=status, text=str(message), codes=codes)

    @property
    def words(self) -> str:
        return " ".join((self.text, *sorted(self.codes)))

    @property
    def kind(self) -> ErrorKind:
        status = self.status
        if status in (None, 400, 413, 422, 500) and _OVERFLOW.search(self.words):
            return ErrorKind.CONTEXT_EXCEEDED
        if status in (None, 400, 422) and _NO_MODEL.search(self.words):
            return ErrorKind.UNKNOWN_MODEL
        if status in (None, 400) and _NO_KEY.search(self.words):
            return ErrorKind.AUTH
        if status is None:
            return self._kind_by_code()
        if status >= 500:
            return ErrorKind.SERVER
        return _BY_STATUS.get(status, ErrorKind.BAD_REQUEST)

    def _kind_by_code(self) -> ErrorKind:
        known = [kind for code, kind in _BY_CODE.items() if code in self.codes]
        return known[0] if known else ErrorKind.SERVER

    def error(self, retry_after: str | None = None) -> EndpointError:
        """The sorted error; `retry_after` is the header's text."""
        wait = seconds_of(retry_after)
        if self.kind is ErrorKind.RATE_LIMIT and (self.status == 402 or self._is_spent(wait)):
            hint = "the account has no quota left; resume the run when it has"
            return EndpointError(self.kind, self._message(hint), final=True)
        if wait is not None and wait > MAX_RETRY_AFTER_SECONDS:
            until = datetime.fromtimestamp(datetime.now(UTC).timestamp() + wait, UTC)
            hint = f"limited until {until:%Y-%m-%d %H:%M} UTC; resume the run then"
            message = self._message(hint)
            return EndpointError(self.kind, message, retry_after_seconds=wait, final=True)
        message = self._message(_NEXT[self.kind])
        return EndpointError(self.kind, message, retry_after_seconds=wait)

    def _is_spent(self, wait: float | None) -> bool:
        """A quota that waiting does not bring back; with Retry-After it is a rate after all."""
        return wait is None and _QUOTA.search(self.words) is not None

    def _message(self, hint: str) -> str:
        where = "inside its stream" if self.status is None else f"with {_status_words(self.status)}"
        said = " ".join(self.text.split())[:EXCERPT_CHARS] or "nothing more"
        return f"the endpoint answered {where}: {said}; {hint}"


def _status_words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def seconds_of(retry_after: str | None) -> float | None:
    """Seconds to wait from a Retry-After header: a number or a date; a past date means now.

    None where there is none that can be read. At most a year.
    """
    text = (retry_after or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _seconds_until(text)
    if seconds != seconds:  # not a number, in either sense
        return None
    return min(max(0.0, seconds), 366 * 86_400.0)


def _seconds_until(text: str) -> float:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return float("nan")
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()
