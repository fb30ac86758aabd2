"""Obey the judge: open the candidate, call it on the judge's buffers, hand over what was seen.

Commands: reach, load, settle, call, batch, collect, quit. Each gets one reply with its sequence
number. Only from `load` on is anything of the candidate's in this process.
What is said here is evidence of an untrusted process; the judge checks it with its own clock.
"""

import ctypes
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from evaluator.host.binding import CandidateError, Entry, EntryMissing, Parameter, Value, bind
from evaluator.host.cuda import CudaError, Driver
from evaluator.host.cupti import CuptiError, Recorder
from evaluator.host.memory import map_memfd
from evaluator.host.protocol import Channel, ChannelClosed, Message


@dataclass(slots=True)
class Session:
    """What `reach` and `load` made: the arena's address, on a GPU the driver, the entry point."""

    base: int = 0
    stream: int | None = None
    entry: Entry | None = None
    driver: Driver | None = None
    recorder: Recorder | None = None
    kept: Any = None
    parameters: Sequence[Parameter] = ()
    windows: list[dict[str, Any]] = field(default_factory=list)

    def reach(self, message: Message) -> Message:
        self.stream = self._map(message["arena"])
        if message.get("cupti"):
            self.recorder = Recorder(message["cupti"])
            self.recorder.start()
        return {}

    def load(self, message: Message) -> Message:
        self.parameters = [_parameter(value) for value in message["parameters"]]
        self.entry = bind(
            ctypes.CDLL(message["library"]),
            message["symbol"],
            message["binding"],
            self.parameters,
            stream=self.stream,
            ffi_library=message.get("ffi_library"),
        )
        self._wait()
        return {}

    def _map(self, arena: Message) -> int | None:
        if arena["kind"] == "memfd":
            self.base, self.kept = map_memfd(arena["descriptor"], arena["byte_count"])
            return None
        self.driver = Driver()
        self.base = self.driver.open_exported(bytes.fromhex(arena["handle"]))
        return self.driver.stream()

    def settle(self, _message: Message) -> Message:
        if self.driver:
            self.driver.forbid_persisting_l2()
        return {}

    def call(self, message: Message) -> Message:
        return self._run([message["arguments"]], message["label"])

    def batch(self, message: Message) -> Message:
        return self._run(message["calls"], message["label"])

    def _run(self, calls: Sequence[Sequence[Value]], label: str) -> Message:
        assert self.entry is not None
        calls = [self._place(arguments) for arguments in calls]
        start_ns = self._now_ns()
        for arguments in calls:
            self.entry(arguments)
        self._wait()
        window = {"label": label, "start": start_ns, "end": self._now_ns()}
        self.windows.append(window)
        return window

    def collect(self, _message: Message) -> Message:
        windows, self.windows = self.windows, []
        records = self.recorder.take() if self.recorder else []
        dropped = self.recorder.dropped if self.recorder else 0
        return {"windows": windows, "records": records, "dropped": dropped}

    def _place(self, arguments: Sequence[Value]) -> list[Value]:
        pairs = zip(self.parameters, arguments, strict=True)
        return [v if p.shape is None else self.base + int(v) for p, v in pairs]

    def _wait(self) -> None:
        if self.driver:
            self.driver.synchronise()

    def _now_ns(self) -> int:
        return self.recorder.now_ns() if self.recorder else time.perf_counter_ns()


def _parameter(value: Message) -> Parameter:
    shape = value["shape"]
    return Parameter(
        name=value["name"], dtype=value["dtype"], shape=None if shape is None else tuple(shape)
    )


def serve(descriptor: int, evaluation: str) -> NoReturn:
    """Answer commands from the socket until `quit` or the judge hangs up; does not return.

    Nothing is taken down before the end: threads of the candidate may still use the arena.
    """
    channel = Channel(socket.socket(fileno=descriptor), evaluation)
    session = Session()
    commands: dict[str, Callable[[Message], Message]] = {
        "reach": session.reach,
        "load": session.load,
        "settle": session.settle,
        "call": session.call,
        "batch": session.batch,
        "collect": session.collect,
    }
    try:
        while (message := channel.receive())["kind"] != "quit":
            kind, fields = _answer(commands[message["kind"]], message)
            channel.send(kind, message["sequence"], fields)
    except ChannelClosed:
        pass
    sys.stdout.flush()
    os._exit(0)


def _answer(command: Callable[[Message], Message], message: Message) -> tuple[str, Message]:
    """The reply's kind says whose trouble it is; a crash says nothing and ends the process."""
    try:
        return "done", command(message)
    except CudaError as error:
        return "device_error", {"code": error.code, "detail": str(error)}
    except (EntryMissing, CandidateError) as error:
        return "candidate_error", {"detail": str(error)}
    except CuptiError as error:
        return "harness_error", {"detail": str(error)}
    except OSError as error:
        return "load_error", {"detail": str(error)}
