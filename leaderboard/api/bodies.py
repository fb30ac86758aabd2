"""Reading bodies with limits that hold while reading, and JSON as RFC 8259 has it.

Not covered: a client that sends one byte a minute holds one thread until the server's own timeout.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from evaluator.records.base import InvalidJson, sha256_hex, strict_loads
from leaderboard.refusals import BodyTooLarge, EncodingRefused, InvalidBody, LengthRequired

CHUNK_BYTES = 64 << 10
DRAIN_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBody:
    """A JSON object with the digest of the very bytes that came."""

    value: dict[str, Any]
    digest: str


class StrictJSONParser(BaseParser):
    """For whoever asks for `request.data`; the views call `read_json` with their own limit."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return read_json(stream).value


class StrictJSONRenderer(JSONRenderer):
    """A NaN in an answer is an error of ours, never a body that other parsers refuse."""

    strict = True

    def render(self, data: Any, *context: Any, **more: Any) -> bytes:
        try:
            answer: bytes = super().render(data, *context, **more)
        except UnicodeEncodeError:  # a lone surrogate of the request, quoted: UTF-8 has none
            self.ensure_ascii = True
            answer = super().render(data, *context, **more)
        return answer


class OnlyOneForm(BaseContentNegotiation):
    """Every address has one form; an Accept header cannot turn an answer into a 406."""

    def select_parser(self, request: Request, parsers: list[Any]) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: list[Any], format_suffix: Any) -> Any:
        return renderers[0], renderers[0].media_type


def read_json(request: Request | HttpRequest, limit_bytes: int | None = None) -> JsonBody:
    """The body as a JSON object.

    Raises UnsupportedMediaType, EncodingRefused, LengthRequired, BodyTooLarge, InvalidBody.
    """
    plain = plain_request(request)
    if plain.content_type not in ("application/json", ""):
        raise UnsupportedMediaType(
            plain.content_type,
            f"Content-Type is {plain.content_type!r}; send application/json",
        )
    limit = limit_bytes or settings.PTXBOARD_MAX_BODY_BYTES
    data = b"".join(body_chunks(plain, limit))
    try:
        value = strict_loads(data)
    except InvalidJson as error:
        raise InvalidBody(str(error)) from error
    except ValueError as error:
        raise InvalidBody(f"not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidBody(f"the body must be a JSON object, not {type(value).__name__}")
    return JsonBody(value=value, digest=sha256_hex(data))


def plain_request(request: Request | HttpRequest) -> HttpRequest:
    return request._request if isinstance(request, Request) else request


def body_chunks(request: HttpRequest, limit_bytes: int) -> Iterator[bytes]:
    """The body piece by piece; raises as soon as the limit is passed, whatever the headers say."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise EncodingRefused(
            f"Content-Encoding is {encoding[:60]!r}; send the body as it is, uncompressed"
        )
    stream, declared = _stream(request)
    if declared is not None and declared > limit_bytes:
        _drain(stream)
        raise BodyTooLarge(f"the body holds {declared} bytes, at most {limit_bytes}")
    total = 0
    while chunk := stream.read(CHUNK_BYTES):
        total += len(chunk)
        if total > limit_bytes:
            _drain(stream)
            raise BodyTooLarge(f"the body holds more than {limit_bytes} bytes, which is the limit")
        yield chunk


def _stream(request: HttpRequest) -> tuple[IO[bytes], int | None]:
    """Where to read and how much was announced; chunked bodies only where the server unpacks them.

    Raises LengthRequired.
    """
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        if not request.META.get("wsgi.input_terminated"):
            raise LengthRequired("the body comes in chunks; send a Content-Length instead")
        return request.META["wsgi.input"], None
    length = request.META.get("CONTENT_LENGTH") or "0"
    return request, int(length) if str(length).isdecimal() else 0  # type: ignore[return-value]


def _drain(stream: IO[bytes]) -> None:
    """Read on for a moment and forget: a client that still sends would not see our answer."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < deadline and stream.read(CHUNK_BYTES):
        pass
