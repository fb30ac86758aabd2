"""A worker's side of the judge process: starts it, sends work, yields stages, restarts it.

No torch here. A judge that dies costs the attempt that it was busy with (EvaluatorFault) and is
started anew for the next one.
"""

import json
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from evaluator.records.base import canonical_json
from evaluator.records.evaluation import AnyStageResult, stage_result_from_json
from evaluator.records.verdicts import EvaluatorFault
from evaluator.work import Work

START_SECONDS = 120.0
EVALUATION_SECONDS = 1800.0
TICK_SECONDS = 0.5
STOP_SECONDS = 10.0
LOG_NAME = "judge.log"
MOST_LOG_BYTES = 1 << 20


class JudgeClient:
    """One judge process; `folder` keeps its log. Use from several threads: they take turns."""

    def __init__(self, folder: Path, *, evaluation_seconds: float = EVALUATION_SECONDS) -> None:
        self._folder = folder
        self._evaluation_seconds = evaluation_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_folder: Path | None = None
        self._turn = threading.Lock()

    def evaluate(self, work: Work) -> Iterator[AnyStageResult]:
        """Stage results of the GPU lane as they come; ends early once the work is cancelled.

        Raises EvaluatorFault for the judge's faults, its death and an overrun of the limit.
        """
        with self._turn, self._connect() as connection:
            self._send(connection, canonical_json(describe(work)).encode() + b"\n")
            for message in self._messages(connection, work):
                if "fault" in message:
                    raise EvaluatorFault(str(message["fault"]))
                if "end" in message:
                    return
                yield stage_result_from_json(message["result"])

    def close(self) -> None:
        """End the judge process: its standard input closes, and it with it."""
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        self._kill()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def _messages(self, connection: socket.socket, work: Work) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + self._evaluation_seconds
        buffered = b""
        while not work.cancelled():
            if time.monotonic() > deadline:
                self._kill()
                raise EvaluatorFault(
                    f"the judge did not finish within {self._evaluation_seconds:g} s; restarted"
                )
            if not select.select([connection], [], [], TICK_SECONDS)[0]:
                continue
            data = self._receive(connection)
            *lines, buffered = (buffered + data).split(b"\n")
            yield from (json.loads(line) for line in lines)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        try:
            connection.sendall(data)
        except OSError as error:
            raise self._died() from error

    def _receive(self, connection: socket.socket) -> bytes:
        with suppress(ConnectionError):
            if data := connection.recv(1 << 20):
                return data
        raise self._died()

    def _connect(self) -> socket.socket:
        """To the judge that runs; to a new one if it has died or its socket is gone."""
        if self._process is not None and self._process.poll() is None:
            with suppress(OSError):
                return self._dial()
        self._kill()
        self._start()
        try:
            return self._dial()
        except OSError as error:
            self._kill()
            raise EvaluatorFault(f"the judge process cannot be reached: {error}") from error

    def _dial(self) -> socket.socket:
        assert self._socket_folder is not None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self._socket_folder / "judge"))
        except OSError:
            connection.close()
            raise
        return connection

    def _start(self) -> None:
        """The socket lies in a short private folder: a Unix socket's path has 107 bytes."""
        self._socket_folder = Path(tempfile.mkdtemp(prefix="ptxboard-judge-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._log().open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "evaluator.judge.server",
                    "--socket",
                    str(self._socket_folder / "judge"),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=Path(__file__).resolve().parents[2],
                start_new_session=True,
            )
        self._await_ready(self._process)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        readable = select.select([process.stdout], [], [], START_SECONDS)[0]
        line = process.stdout.readline() if readable else b""
        if line.strip() != b"ready":
            self._kill()
            raise EvaluatorFault(f"the judge process did not start: {self._last_words()}")

    def _died(self) -> EvaluatorFault:
        self._kill()
        return EvaluatorFault(f"the judge process died during the evaluation: {self._last_words()}")

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:  # waits, and closes both pipes
                pass
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None

    def _log(self) -> Path:
        """Its path; begun anew once it is long."""
        log = self._folder / LOG_NAME
        if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
            log.rename(log.with_suffix(".old"))
        return log

    def _last_words(self) -> str:
        log = self._folder / LOG_NAME
        text = log.read_text(errors="replace") if log.exists() else ""
        return text.strip()[-500:] or f"it said nothing in {log}"


def describe(work: Work) -> dict[str, Any]:
    """All that another process needs to go on with the work."""
    return {
        "candidate": work.candidate.model_dump(mode="json"),
        "problem": work.problem.model_dump(mode="json"),
        "target": work.target.slug,
        "folder": str(work.folder.resolve()),
        "results": [result.model_dump(mode="json") for result in work.results],
    }
