"""A process under limits: bounded output, killed as a group, reported in one record."""

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaluator.records.evidence import Ending, ProcessReport
from evaluator.records.verdicts import EvaluatorFault

HEAD_BYTES = 32 << 10
TAIL_BYTES = 32 << 10
CHUNK_BYTES = 64 << 10
EXIT_BY_SIGNAL = 128
KILL_GRACE_SECONDS = 5.0
PRLIMIT = "/usr/bin/prlimit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of each process inside; None means not limited.

    cpu_seconds          processor time of one process; SIGXCPU, then SIGKILL two seconds later
    file_bytes           size of one written file
    open_files           descriptors of one process
    processes            processes and threads of the sandbox
    address_space_bytes  virtual memory of one process (CUDA reserves terabytes: compilers only)
    """

    cpu_seconds: int | None = None
    file_bytes: int | None = 1 << 30
    open_files: int | None = 1024
    processes: int | None = 512
    address_space_bytes: int | None = None


def limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """The command behind `prlimit`, which sets the limits and then becomes the command."""
    arguments = [PRLIMIT, "--core=0"]
    if limits.cpu_seconds is not None:
        arguments.append(f"--cpu={limits.cpu_seconds}:{limits.cpu_seconds + 2}")
    for option, value in (
        ("fsize", limits.file_bytes),
        ("nofile", limits.open_files),
        ("nproc", limits.processes),
        ("as", limits.address_space_bytes),
    ):
        if value is not None:
            arguments.append(f"--{option}={value}")
    return [*arguments, "--", *argv]


class BoundedOutput:
    """Keeps the first and the last bytes of a stream, however much flows through."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped_bytes = 0
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        with self._lock:
            room = HEAD_BYTES - len(self._head)
            self._head += data[:room]
            rest = data[room:] if room < len(data) else b""
            if rest:
                self._tail.append(rest)
                self._tail_bytes += len(rest)
            while self._tail and self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:
                dropped = self._tail.popleft()
                self._tail_bytes -= len(dropped)
                self._dropped_bytes += len(dropped)

    def text(self) -> tuple[str, bool]:
        """The text kept, and whether bytes between head and tail were dropped."""
        with self._lock:
            tail = b"".join(self._tail)
            surplus = max(0, len(tail) - TAIL_BYTES)
            dropped = self._dropped_bytes + surplus
            note = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
            kept = bytes(self._head) + note + tail[surplus:]
        return kept.decode("utf-8", errors="replace"), dropped > 0


class RunningProcess:
    """A started process; `wait` ends it, one way or another, and reports."""

    def __init__(
        self,
        *,
        child: subprocess.Popen[bytes],
        command: tuple[str, ...],
        status_end: int | None,
    ) -> None:
        """`status_end` reads what bubblewrap says of its child; None when not sandboxed."""
        self._child = child
        self._command = command
        self._status_end = status_end
        self._started_ns = time.monotonic_ns()
        self._output = BoundedOutput()
        self._killed: Ending | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        _offer_to_the_oom_killer(child.pid)

    @property
    def pid(self) -> int:
        """Of the launcher outside; the process inside has another."""
        return self._child.pid

    def poll(self) -> int | None:
        return self._child.poll()

    def output(self) -> str:
        return self._output.text()[0]

    def kill(self, ending: Ending = Ending.TIMED_OUT) -> None:
        """End the whole process group at once; the report will say `ending`."""
        if self._child.poll() is None and self._killed is None:
            self._killed = ending
        self._kill_group()

    def wait(self, timeout_seconds: float) -> ProcessReport:
        """Wait until it ends, at most so long, then kill what is left of the group."""
        try:
            self._child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self._await_death()
        duration_ns = time.monotonic_ns() - self._started_ns
        self._kill_group()
        self._reader.join(KILL_GRACE_SECONDS)
        try:
            return self._report(duration_ns, timeout_seconds)
        finally:
            if self._status_end is not None:
                os.close(self._status_end)

    def _await_death(self) -> None:
        try:
            self._child.wait(KILL_GRACE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise EvaluatorFault(
                f"process {self.pid} survived SIGKILL for {KILL_GRACE_SECONDS:.0f} s; "
                "it hangs in the kernel: check the GPU driver, or restart the machine"
            ) from error

    def _kill_group(self) -> None:
        # The group outlives its leader while members remain, and its number is not reused then.
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as stream:
            while data := os.read(stream.fileno(), CHUNK_BYTES):
                self._output.add(data)

    def _report(self, duration_ns: int, timeout_seconds: float) -> ProcessReport:
        code = self._child.returncode
        number = _signal_of(code)
        ending, detail = self._ending(number, timeout_seconds)
        text, truncated = self._output.text()
        if self._killed is None:
            self._refuse_failed_setup(text)
        return ProcessReport(
            command=self._command,
            ending=ending,
            exit_code=None if number or self._killed else code,
            signal=number,
            duration_ns=duration_ns,
            detail=detail,
            output_tail=text,
            output_truncated=truncated,
            sandboxed=self._status_end is not None,
        )

    def _refuse_failed_setup(self, text: str) -> None:
        """Bubblewrap tells an exit code only of a command that it started; else it is our fault.

        The output alone cannot tell: a candidate may print bubblewrap's words.
        """
        if self._status_end is None:
            return
        with open(self._status_end, "rb", closefd=False) as status:
            started = b"exit-code" in status.read(4096)
        if not started:
            name = Path(self._command[0]).name
            raise EvaluatorFault(f"sandbox: {name} could not be started: {text.strip()[-500:]}")

    def _ending(self, number: int | None, timeout_seconds: float) -> tuple[Ending, str]:
        if self._killed is Ending.TIMED_OUT:
            return Ending.TIMED_OUT, f"still running after {timeout_seconds:g} s, limit reached"
        if self._killed is not None:
            return self._killed, "ended by the evaluator"
        if number == signal.SIGXCPU:
            return Ending.TIMED_OUT, "used up its processor time"
        if number == signal.SIGKILL:
            return Ending.OUT_OF_MEMORY, "killed by the system, most likely for its memory"
        if number is not None:
            return Ending.CRASHED, f"ended by signal {number} ({_signal_name(number)})"
        return Ending.FINISHED, ""


def _offer_to_the_oom_killer(process: int) -> None:
    """Where memory runs out, the candidate goes first and not whoever measures it."""
    with suppress(OSError):  # it has ended already, or /proc is not ours to write
        Path(f"/proc/{process}/oom_score_adj").write_text("1000")


def _signal_of(code: int) -> int | None:
    """A shell and bubblewrap report a signal of their child as 128 + its number."""
    if code < 0:
        return -code
    number = code - EXIT_BY_SIGNAL
    return number if 0 < number <= signal.SIGRTMAX else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
