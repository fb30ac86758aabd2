"""Frames between judge and host: whole messages of this conversation, or a named failure."""

import socket
import struct
import threading
import time

import pytest

from evaluator.host.protocol import (
    MAX_MESSAGE_BYTES,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    ProtocolBreach,
)


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def test_a_message_arrives_with_evaluation_sequence_and_kind(ends):
    here, there = ends
    Channel(here, "e").send("call", 7, {"arguments": [1, 2.5, True]})
    assert Channel(there, "e").receive(1) == {
        "evaluation": "e",
        "sequence": 7,
        "kind": "call",
        "arguments": [1, 2.5, True],
    }


def test_a_message_in_pieces_is_one_message(ends):
    here, there = ends
    whole = frame(b'{"evaluation":"e"}')
    sender = threading.Thread(
        target=lambda: [(here.sendall(whole[at : at + 1]), time.sleep(0.001)) for at in range(22)]
    )
    sender.start()
    assert Channel(there, "e").receive(5) == {"evaluation": "e"}
    sender.join()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (frame(b"PASSED"), "6 bytes that are not JSON"),
        (frame(b"[1]"), "expected a JSON object, got list"),
        (frame(b'{"evaluation":"other"}'), "a message of another evaluation"),
        (frame(b"[" * 100_000), "100000 bytes that are not JSON"),
        (struct.pack(">I", MAX_MESSAGE_BYTES + 1), f"at most {MAX_MESSAGE_BYTES}"),
    ],
)
def test_what_is_no_message_of_ours_is_a_breach(ends, sent, words):
    here, there = ends
    here.sendall(sent)
    with pytest.raises(ProtocolBreach, match=words):
        Channel(there, "e").receive(1)


def test_half_a_message_runs_into_the_limit(ends):
    here, there = ends
    here.sendall(b"\0\0\0\x10half")
    with pytest.raises(ChannelTimeout):
        Channel(there, "e").receive(0.2)


def test_bytes_that_drip_do_not_stretch_the_limit(ends):
    here, there = ends
    stop = threading.Event()

    def drip() -> None:
        here.sendall(struct.pack(">I", 1000))
        while not stop.wait(0.02):
            here.sendall(b" ")

    dripping = threading.Thread(target=drip)
    dripping.start()
    start = time.monotonic()
    with pytest.raises(ChannelTimeout):
        Channel(there, "e").receive(0.5)
    assert time.monotonic() - start < 2
    stop.set()
    dripping.join()


def test_an_end_that_is_gone_is_told(ends):
    here, there = ends
    here.close()
    with pytest.raises(ChannelClosed):
        Channel(there, "e").receive(1)
