"""One call by the official clients of OpenAI and Anthropic, and what their errors mean.

The official clients build the requests and read the streams; connections are `egress`'s, retries
are the caller's. What leaves is exactly the headers named here: the clients' own reading of the
environment (OPENAI_*, ANTHROPIC_*) and their telemetry never reach an endpoint that a user names.
"""

import json
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import openai
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from evaluator.agent.messages import Message, well_formed
from leaderboard.endpoints import chat, responses
from leaderboard.endpoints import messages as blocks
from leaderboard.endpoints.addresses import Allowed, check_text
from leaderboard.endpoints.classification import Problem
from leaderboard.endpoints.egress import Limits, http_client
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.keys import redact
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.replies import MAX_RAW_BYTES, Reply
from leaderboard.endpoints.shapes import bad_reply, word

log = logging.getLogger(__name__)

MAX_DIALECTS = 4  # an endpoint's refusals of a field that one call may answer with another form
_READERS: dict[Api, ModuleType] = {
    Api.CHAT: chat,
    Api.RESPONSES: responses,
    Api.MESSAGES: blocks,
}
_HEADERS = frozenset({"accept", "anthropic-version", "content-length", "content-type", "host"})
_NO_STREAM = ("not support", "unsupported", "not allowed", "must be false", "disabled", "unavail")


def call(
    endpoint: Endpoint,
    messages: Sequence[Message],
    parameters: Parameters,
    label: str,
    limits: Limits,
) -> Reply:
    """Raises EndpointError, a client's error, or whatever a reply's shape brings about."""
    if misfits := parameters.misfits(endpoint.api):
        raise EndpointError(ErrorKind.BAD_REQUEST, "; ".join(misfits))
    allowed = _allowed()
    check_text(endpoint.base_url, allowed)
    outgoing = _Outgoing(endpoint, parameters)
    reader = _READERS[endpoint.api]
    fields = reader.fields(endpoint, messages, parameters, label if parameters.send_labels else "")
    with http_client(limits=limits, allowed=allowed, outgoing=outgoing) as http:
        way = _Call(endpoint, http, limits)
        whole, headers = _in_some_dialect(way, reader, fields, stream=parameters.stream)
    return _reply(endpoint, reader, whole, headers, outgoing.sent)


def _allowed() -> Allowed:
    try:
        return Allowed.read(settings.PTXBOARD_ENDPOINT_HOSTS)
    except ValueError as error:
        raise ImproperlyConfigured(str(error)) from error


@dataclass
class _Outgoing:
    """Last look at a request: only known headers, with the key where this API wants it."""

    endpoint: Endpoint
    parameters: Parameters
    sent: bytes = field(default=b"", repr=False)

    def __call__(self, request: httpx2.Request) -> httpx2.Headers:
        self.sent = request.read()
        kept = [(k, v) for k, v in request.headers.multi_items() if k.lower() in _HEADERS]
        headers = httpx2.Headers(kept)
        headers["User-Agent"] = "ptxboard"
        headers["Accept-Encoding"] = "identity"
        headers.update(self.parameters.extra_headers)
        if key := self.endpoint.key.get_secret_value():
            if self.endpoint.api is Api.MESSAGES:
                headers["X-Api-Key"] = key
            else:
                headers["Authorization"] = f"Bearer {key}"
        return headers


@dataclass(frozen=True)
class _Call:
    """One way to one endpoint: an official client over the guarded connection."""

    endpoint: Endpoint
    http: httpx2.Client
    limits: Limits

    def start(self, **fields: Any) -> AbstractContextManager[Any]:
        """The call under way; the context's value has headers, `read()` and `parse()`."""
        client = self._client()
        if self.endpoint.api is Api.CHAT:
            ask = client.chat.completions
        else:
            ask = client.responses if self.endpoint.api is Api.RESPONSES else client.messages
        started: AbstractContextManager[Any] = ask.with_streaming_response.create(**fields)
        return started

    def _client(self) -> Any:
        common: dict[str, Any] = {
            "api_key": "sent-by-us",  # the header is set in _Outgoing, for all clients alike
            "base_url": self.endpoint.root,
            "max_retries": 0,
            "http_client": self.http,
        }
        if self.endpoint.api is Api.MESSAGES:
            return anthropic.Anthropic(**common, open_telemetry=False)
        return openai.OpenAI(**common)

    def ask(
        self, reader: ModuleType, fields: dict[str, Any], *, stream: bool
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """A whole reply as JSON, and its headers. Raises EndpointError or a client's error."""
        # a whole reply comes after all of the thinking, so its first byte may take the whole time
        idle_seconds = self.limits.idle_seconds if stream else self.limits.total_seconds
        timeout = httpx2.Timeout(idle_seconds, connect=self.limits.connect_seconds)
        with self.start(**fields, stream=stream, timeout=timeout) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind in ("text/html", "application/xhtml+xml"):
                raise bad_reply(
                    "a web page came instead of an answer; check the base URL, which often ends "
                    "in /v1",
                    final=True,
                )
            if stream and "json" not in kind:
                events = response.parse()
                return reader.assemble(_plain(events)), response.headers
            whole = json.loads(response.read())
            if not isinstance(whole, dict):
                raise bad_reply(f"the endpoint's reply is a JSON {type(whole).__name__}")
            return whole, response.headers


def _plain(events: Any) -> Iterator[dict[str, Any]]:
    for event in events:
        if hasattr(event, "to_dict"):
            yield event.to_dict(warnings=False)


def _in_some_dialect(
    way: _Call, reader: ModuleType, fields: dict[str, Any], *, stream: bool
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Ask; where the endpoint refuses a field for which there is another form, ask with that."""
    if stream and reader is chat:
        fields = {**fields, "stream_options": {"include_usage": True}}
    for _ in range(MAX_DIALECTS):
        try:
            return way.ask(reader, fields, stream=stream)
        except (openai.BadRequestError, anthropic.BadRequestError) as error:
            refusal = _of_status(error)
        except (openai.UnprocessableEntityError, anthropic.UnprocessableEntityError) as error:
            refusal = _of_status(error)
        if refusal.kind is not ErrorKind.BAD_REQUEST:
            break
        changed = reader.adapted(fields, refusal)
        if changed is None and stream and _refuses_stream(refusal):
            stream = False
            changed = {k: v for k, v in fields.items() if k != "stream_options"}
        if changed is None:
            break
        fields = changed
    raise refusal


def _refuses_stream(refusal: EndpointError) -> bool:
    text = refusal.message.lower()
    return "stream" in text and any(words in text for words in _NO_STREAM)


def _of_status(error: openai.APIStatusError | anthropic.APIStatusError) -> EndpointError:
    """Errors that came with a status; Anthropic's client gives those of a stream one of 200."""
    response = error.response
    if response.status_code < 400:
        return Problem.of_json(None, error.body).error()
    problem = Problem.read(response.status_code, response.text)
    return problem.error(response.headers.get("retry-after"))


def sorted_error(error: BaseException, endpoint: Endpoint) -> EndpointError:
    """A fresh EndpointError without key and path, whatever `error` and its causes hold.

    Errors are public as the reason of a run, of whose address only the host is.
    """
    found = _endpoint_error(error)
    message = redact(_clean(found.message), endpoint.key.get_secret_value())
    return EndpointError(
        found.kind,
        redact(message, endpoint.path, mark="[path]"),
        retry_after_seconds=found.retry_after_seconds,
        final=found.final,
    )


def _endpoint_error(error: BaseException) -> EndpointError:
    cause: BaseException | None = error
    while cause is not None:  # the clients wrap what the transport raises
        if isinstance(cause, EndpointError):
            return cause
        cause = cause.__cause__
    if isinstance(error, openai.APIStatusError | anthropic.APIStatusError):
        return _of_status(error)
    if isinstance(error, openai.APIConnectionError | anthropic.APIConnectionError):
        return EndpointError(ErrorKind.UNREACHABLE, "the connection to the endpoint failed")
    if isinstance(error, openai.APIError | anthropic.APIError):
        return Problem.of_json(None, error.body or str(error)).error()
    if isinstance(error, ValueError | RecursionError):  # of JSON, UTF-8, pydantic
        return bad_reply("the endpoint's reply is not JSON in UTF-8, or an event of it is not")
    where = traceback.extract_tb(error.__traceback__)[-1]  # names and lines, no values
    log.warning("%s at %s:%s", type(error).__name__, where.filename, where.lineno)
    return bad_reply("the endpoint's reply has a shape that this API does not have")


def _reply(
    endpoint: Endpoint,
    reader: ModuleType,
    whole: dict[str, Any],
    headers: Mapping[str, str],
    sent: bytes,
) -> Reply:
    key = endpoint.key.get_secret_value()
    parts = reader.read(whole)

    def safe(text: str | None) -> str | None:
        return None if text is None else redact(_clean(text), key)

    return Reply(
        text=safe(parts.text) or "",
        reasoning=safe(parts.reasoning) or "",
        finish_reason=safe(parts.finish_reason),
        usage=parts.usage,
        raw=_raw(whole, key),
        sent=redact(sent.decode("utf-8", "replace"), key),
        model=safe(word(whole.get("model"))),
        request_id=safe(word(headers.get("x-request-id") or headers.get("request-id"))),
    )


def _raw(whole: dict[str, Any], key: str) -> str:
    """The reply as JSON without the key, cut where it is too long."""
    text = redact(_clean(json.dumps(whole, ensure_ascii=False, default=str)), key)
    data = text.encode()
    if len(data) <= MAX_RAW_BYTES:
        return text
    note = f"... cut, {len(data)} bytes in all"
    return data[: MAX_RAW_BYTES - len(note)].decode("utf-8", "ignore") + note


def _clean(text: str) -> str:
    """Text that a database takes: no NUL, and every character has UTF-8 bytes."""
    return well_formed(text).replace("\0", "\ufffd")
