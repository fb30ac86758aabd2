"""Messages between judge and host: 4 bytes of length, big-endian, then one JSON object.

Every message carries the evaluation it belongs to, a sequence number and a kind. Both sides read
with this module; the judge trusts nothing that it reads here but the fact that something came.
"""

import json
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

MAX_MESSAGE_BYTES = 16 << 20
TICK_S = 0.5
HEADER = struct.Struct(">I")

Message = dict[str, Any]


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """Nothing whole came within the time limit."""


class ProtocolBreach(Exception):
    """Bytes that are no message of this conversation; the text says what was seen."""


def readable(value: object, most: int) -> str:
    """Text of the other side as records take it: no NUL, no lone surrogate, at most `most` long."""
    text = str(value)[:most].encode("utf-8", "replace").decode()
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


class Channel:
    """One end of the conversation about one evaluation."""

    def __init__(self, connection: socket.socket, evaluation: str) -> None:
        self._connection = connection
        self._evaluation = evaluation

    def send(self, kind: str, sequence: int, fields: Message) -> None:
        message = {**fields, "evaluation": self._evaluation, "sequence": sequence, "kind": kind}
        body = json.dumps(message, separators=(",", ":")).encode()
        if len(body) > MAX_MESSAGE_BYTES:
            raise ProtocolBreach(f"message of {len(body)} bytes, at most {MAX_MESSAGE_BYTES}")
        try:
            self._connection.sendall(HEADER.pack(len(body)) + body)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(
        self, timeout_s: float | None = None, tick: Callable[[], None] | None = None
    ) -> Message:
        """The next message; `tick` is called about twice a second while nothing comes.

        Raises ChannelClosed, ChannelTimeout, ProtocolBreach.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        (length,) = HEADER.unpack(self._read(HEADER.size, deadline, tick))
        if length > MAX_MESSAGE_BYTES:
            raise ProtocolBreach(f"message of {length} bytes, at most {MAX_MESSAGE_BYTES}")
        return self._parse(self._read(length, deadline, tick))

    def _read(self, count: int, deadline: float | None, tick: Callable[[], None] | None) -> bytes:
        parts: list[bytes] = []
        while count:
            self._wait(deadline, tick)
            try:
                part = self._connection.recv(min(count, 1 << 20))
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not part:
                raise ChannelClosed("end of stream")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _wait(self, deadline: float | None, tick: Callable[[], None] | None) -> None:
        while True:
            left = TICK_S if deadline is None else min(TICK_S, deadline - time.monotonic())
            if left <= 0:
                raise ChannelTimeout
            if select.select([self._connection], [], [], left)[0]:
                return
            if tick:
                tick()

    def _parse(self, body: bytes) -> Message:
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ProtocolBreach(f"{len(body)} bytes that are not JSON") from error
        if not isinstance(message, dict):
            raise ProtocolBreach(f"expected a JSON object, got {type(message).__name__}")
        if message.get("evaluation") != self._evaluation:
            raise ProtocolBreach("a message of another evaluation")
        return message
