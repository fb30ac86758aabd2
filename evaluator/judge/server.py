"""The judge as a process of its own: `python -m evaluator.judge.server --socket PATH`.

It outlives the tasks that use it, so that a recycled worker does not drop the device's state. One
evaluation at a time over a Unix socket that only its owner can reach: one JSON line in (an
evaluation's description), one JSON line out for each stage, then `end` or `fault`. The client
hanging up cancels. The process ends when its standard input closes: with the worker, whatever way
that one ends.
"""

import json
import os
import select
import socket
import sys
import threading
import traceback
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.bench import Bench
from evaluator.device import Device
from evaluator.judge.host_process import Cancelled
from evaluator.judge.judge import Judge
from evaluator.pipeline import run_lane
from evaluator.records.base import canonical_json
from evaluator.records.candidate import Candidate
from evaluator.records.evaluation import AnyStageResult, stage_result_from_json
from evaluator.records.problem import Problem
from evaluator.records.verdicts import EvaluatorFault, Lane
from evaluator.sandbox import Sandbox
from evaluator.targets import find_target
from evaluator.toolchain import Toolchain
from evaluator.work import Work

MAX_LINE_BYTES = 64 << 20
READY = "ready"


class Server:
    """Judges by target, made when first needed; requests in turn."""

    def __init__(self, path: Path) -> None:
        self._sandbox, self._toolchain = Sandbox.find(), Toolchain.find()
        self._devices: dict[str, Device] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        old_mask = os.umask(0o177)
        try:
            self._socket.bind(str(path))
        finally:
            os.umask(old_mask)
        self._socket.listen(8)

    def serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                try:
                    self._answer(connection)
                except (OSError, Cancelled):
                    continue  # the client is gone, and with it whoever wanted to know

    def _answer(self, connection: socket.socket) -> None:
        try:
            work = read_work(_read_line(connection), lambda: _hung_up(connection))
            for result in run_lane(work, self._bench(work), Lane.GPU):
                _write(connection, {"result": result.model_dump(mode="json")})
        except EvaluatorFault as fault:
            if isinstance(fault.__cause__, Cancelled):
                return
            _write(connection, {"fault": str(fault)})
        except Exception as error:
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-8)}"
            _write(connection, {"fault": text})
        else:
            _write(connection, {"end": True})

    def _bench(self, work: Work) -> Bench:
        slug = work.target.slug
        if slug not in self._devices:
            self._devices[slug] = Judge(work.target, self._sandbox, self._toolchain)
        return Bench(sandbox=self._sandbox, toolchain=self._toolchain, device=self._devices[slug])


def read_work(line: bytes, cancelled: Callable[[], bool]) -> Work:
    """Raises ValueError (pydantic's too) for anything that `client.describe` did not write."""
    value = json.loads(line)
    results: list[AnyStageResult] = [stage_result_from_json(item) for item in value["results"]]
    return Work(
        candidate=Candidate.model_validate(value["candidate"]),
        problem=Problem.model_validate(value["problem"]),
        target=find_target(value["target"]),
        folder=Path(value["folder"]),
        results=tuple(results),
        cancelled=cancelled,
    )


def _read_line(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        line = stream.readline(MAX_LINE_BYTES)
    if not line.endswith(b"\n"):
        raise ConnectionError("the client hung up before a whole request came")
    return line


def _hung_up(connection: socket.socket) -> bool:
    if not select.select([connection], [], [], 0)[0]:
        return False
    return connection.recv(1, socket.MSG_PEEK) == b""


def _write(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(canonical_json(message).encode() + b"\n")


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(prog="python -m evaluator.judge.server")
    parser.add_argument("--socket", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        server = Server(options.socket)
    except EvaluatorFault as fault:
        print(fault, file=sys.stderr, flush=True)
        return 3
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(READY, flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody reads that pipe any more
    server.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
