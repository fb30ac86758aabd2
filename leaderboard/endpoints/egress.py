"""The one module of the site that opens outgoing connections: to model endpoints that users name.

The host is looked up once per call, every one of its addresses is judged (`addresses.py`), and the
connection goes to a judged address while Host, SNI and certificate check keep the name. Redirects,
proxies of the environment and compressed replies are not taken. Time and bytes are bounded on the
socket, below HTTP and TLS, so that headers, errors and streams are bounded alike. A forbidden
address is never connected to.

Not covered: a public address of the site itself, and services beside it that listen on 443 or 8443
there; keep the `io` worker in a network that reaches neither.
"""

import contextlib
import ipaddress
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from leaderboard.endpoints.addresses import Address, Allowed, check_url, host_of, judge, port_of
from leaderboard.endpoints.errors import EndpointError, ErrorKind

RESOLVE_SECONDS = 5.0
MAX_ADDRESSES = 4
WRITE_BYTES = 64 << 10
_SILENT = "the endpoint did not take the connection; check its address, or try again later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one call: seconds to connect, between two bytes of a stream, and in all; reply bytes."""

    total_seconds: float
    connect_seconds: float = 10
    idle_seconds: float = 300
    reply_bytes: int = 16 << 20


def http_client(
    *, limits: Limits, allowed: Allowed, outgoing: Callable[[httpx2.Request], httpx2.Headers]
) -> httpx2.Client:
    """An HTTP client for one call: its clock starts now.

    `outgoing` sees each request last and returns the headers that leave, whatever the request has.
    """
    return httpx2.Client(
        transport=_Transport(limits=limits, allowed=allowed, outgoing=outgoing),
        timeout=httpx2.Timeout(limits.idle_seconds, connect=limits.connect_seconds),
        follow_redirects=False,
        trust_env=False,
    )


def resolve(host: str, port: int) -> list[Address]:
    """All addresses of `host`; none where no such name exists. Raises EndpointError UNREACHABLE.

    In a thread of its own, since getaddrinfo takes no time limit.
    """
    answers: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except UnicodeError:
            answers.put([])
        except OSError as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=RESOLVE_SECONDS)
    except queue.Empty:
        answer = socket.gaierror(socket.EAI_AGAIN, "no answer in time")
    if isinstance(answer, list):
        return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in answer))
    if answer.errno == socket.EAI_AGAIN:
        raise EndpointError(ErrorKind.UNREACHABLE, _SILENT)
    return []


class _Clock:
    """Time and bytes left for one call; shared by its connections."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = time.monotonic() + limits.total_seconds
        self._bytes = 0

    def seconds(self, wanted: float | None) -> float:
        """How long the next step may take. Raises EndpointError TIMEOUT when no time is left."""
        left = self._end - time.monotonic()
        if left > 0:
            return min(left, self._limits.idle_seconds if wanted is None else wanted)
        raise EndpointError(
            ErrorKind.TIMEOUT,
            f"the endpoint did not end its answer within {self._limits.total_seconds:g} s, the "
            "longest call; ask for fewer tokens, or ask the operator to raise "
            "PTXBOARD_ENDPOINT_SECONDS",
        )

    def count(self, data: bytes) -> bytes:
        self._bytes += len(data)
        if self._bytes <= self._limits.reply_bytes:
            return data
        raise EndpointError(
            ErrorKind.TOO_LARGE,
            f"the endpoint's reply has more than {self._limits.reply_bytes} bytes, the limit; ask "
            "for fewer tokens",
        )


class _Stream(httpcore2.NetworkStream):
    """A connection whose every step is bounded by the call's clock."""

    def __init__(self, inner: httpcore2.NetworkStream, clock: _Clock) -> None:
        self._inner, self._clock = inner, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        seconds = self._clock.seconds(timeout)
        with contextlib.suppress(httpcore2.ReadTimeout):
            return self._clock.count(self._inner.read(max_bytes, seconds))
        self._clock.seconds(timeout)
        raise EndpointError(
            ErrorKind.TIMEOUT, f"the endpoint has stalled: it sent nothing for {seconds:g} s"
        )

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITE_BYTES):
            part = buffer[start : start + WRITE_BYTES]
            self._inner.write(part, self._clock.seconds(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        seconds = self._clock.seconds(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, seconds), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    """Connects to the addresses that were judged for this call, whatever the host is called."""

    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self._inner = httpcore2.SyncBackend()
        self.judged: tuple[Address, ...] = ()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        for address in self.judged[:MAX_ADDRESSES]:
            seconds = self._clock.seconds(timeout)
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return _Stream(self._inner.connect_tcp(str(address), port, seconds), self._clock)
        raise EndpointError(ErrorKind.UNREACHABLE, _SILENT)


class _Transport(httpx2.BaseTransport):
    """One call's transport; a redirect and a compressed reply are errors."""

    def __init__(
        self,
        *,
        limits: Limits,
        allowed: Allowed,
        outgoing: Callable[[httpx2.Request], httpx2.Headers],
    ) -> None:
        self._allowed, self._outgoing = allowed, outgoing
        self._backend = _Backend(_Clock(limits))
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            network_backend=self._backend,
            max_connections=1,
            max_keepalive_connections=0,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        self._backend.judged = self._judged(request.url)
        with _in_words():
            reply = self._pool.handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=url,
                    headers=self._outgoing(request).raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        body = _Body(reply)
        try:
            response = httpx2.Response(status_code=reply.status, headers=reply.headers, stream=body)
            _check_reply(response)
        except EndpointError:
            body.close()
            raise
        return response

    def _judged(self, url: httpx2.URL) -> tuple[Address, ...]:
        check_url(url, self._allowed)
        found = resolve(host_of(url), port_of(url))
        judge(url, found, self._allowed)
        return tuple(found)

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, reply: httpcore2.Response) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        with _in_words():
            yield from self._reply.iter_stream()

    def close(self) -> None:
        self._reply.close()


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Errors of the connection become EndpointErrors that name no address."""
    try:
        yield
    except httpcore2.TimeoutException:
        message = "the endpoint took too long to take the connection or the request"
        raise EndpointError(ErrorKind.TIMEOUT, message) from None
    except httpcore2.ConnectError:
        message = "no secure connection: the certificate does not fit the name, or TLS failed"
        raise EndpointError(ErrorKind.UNREACHABLE, message) from None
    except (httpcore2.ProtocolError, httpcore2.NetworkError):
        message = "the endpoint broke off, or its reply is not HTTP"
        raise EndpointError(ErrorKind.BAD_REPLY, message) from None


def _check_reply(response: httpx2.Response) -> None:
    """Raises EndpointError BAD_REPLY for what only the user can mend."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if 300 <= response.status_code < 400:
        problem = (
            f"the endpoint redirects ({response.status_code}), which is not followed; give the "
            "address that it points to"
        )
    elif encoding not in ("", "identity"):
        problem = f"the endpoint's reply is compressed ({encoding[:20]}), which was not asked for"
    else:
        return
    raise EndpointError(ErrorKind.BAD_REPLY, problem, final=True)
