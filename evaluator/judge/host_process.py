"""A candidate's process as the judge holds it: started confined, asked in turn, ended for sure.

Whatever goes wrong inside is told as HostFailure with an Ending; the judge stays unharmed.
"""

import os
import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from evaluator.host.cuda import OUT_OF_MEMORY
from evaluator.host.protocol import (
    Channel,
    ChannelClosed,
    ChannelTimeout,
    Message,
    ProtocolBreach,
    readable,
)
from evaluator.judge.arena import Memory
from evaluator.judge.confinement import (
    LIBRARY_NAME,
    cupti_library,
    ffi_library,
    interpreter,
    surroundings,
)
from evaluator.judge.mappings import mapped_libraries, may_run, processes_of
from evaluator.problems.prototypes import parameters
from evaluator.process import RunningProcess
from evaluator.records.candidate import Binding
from evaluator.records.evidence import Ending, ProcessReport
from evaluator.records.problem import Problem
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import Sandbox
from evaluator.work import Work

START_SECONDS = 60.0
STOP_SECONDS, STOP_POLL_SECONDS = 1.0, 0.0005
QUIT_SECONDS = 5.0
COMMAND_SHOWN = ("python", "-m", "evaluator.host", "serve")
ALLOWANCE_BYTES = 16 << 30
DETAIL_CHARACTERS = 2000


class Cancelled(Exception):
    """The evaluation was called off from outside."""


class HostFailure(Exception):
    """How the host failed, and a text for the author."""

    def __init__(self, *, ending: Ending, detail: str) -> None:
        super().__init__(detail)
        self.ending, self.detail = ending, detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`wall_ns` from before sending to after receiving, on the judge's clock."""

    fields: Message
    wall_ns: int


class HostProcess:
    """One sandboxed host for one stage; use as a context manager."""

    def __init__(self, work: Work, sandbox: Sandbox, memory: Memory, *, cupti: bool) -> None:
        self._work, self._memory = work, memory
        self._sequence = 0
        self._failed: dict[str, object] = {}
        self._mapped: set[str] = set()
        self._ended: ProcessReport | None = None
        self._cupti = cupti_library() if cupti else None
        self._evaluation = secrets.token_hex(8)
        self._free_before = _free_beside_torch() if work.target.is_gpu else None
        self._workspace = Path(tempfile.mkdtemp(prefix="ptxboard-host-"))
        self._connection, there = socket.socketpair()
        try:
            with there:
                self._process = self._start(sandbox, there)
        except BaseException:
            self._connection.close()
            shutil.rmtree(self._workspace, ignore_errors=True)
            raise
        self._channel = Channel(self._connection, self._evaluation)
        self._library = str(sandbox.inside(self._workspace) / LIBRARY_NAME)

    def _start(self, sandbox: Sandbox, there: socket.socket) -> RunningProcess:
        put_library(self._work, self._workspace)
        around = surroundings(self._work)
        tools = (self._cupti.parent,) if self._cupti else ()
        return sandbox.popen(
            [*interpreter(), "serve", str(there.fileno()), self._evaluation],
            workspace=self._workspace,
            read_only=(*around.mounts, *tools),
            hidden=around.hidden,
            env=around.environment,
            gpu=self._work.target.is_gpu,
            pass_fds=(there.fileno(), *self._memory.descriptors()),
        )

    def __enter__(self) -> "HostProcess":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._ended is None:
                self._process.kill()
            self._end()
        finally:
            self._connection.close()
            shutil.rmtree(self._workspace, ignore_errors=True)

    def _end(self) -> ProcessReport:
        """Wait a little, kill what is left, and keep the one report that there is."""
        if self._ended is None:
            self._ended = self._process.wait(QUIT_SECONDS)
        return self._ended

    def carry_out(self, run: Callable[[], None]) -> ProcessReport:
        """Open the candidate, go through `run`, end the process: how all of it went.

        A HostFailure is told in the report. Raises EvaluatorFault, Cancelled.
        """
        try:
            self._reach()
            self._load()
            self._run_within_memory(run)
            self.read_mapped_libraries()
        except HostFailure:
            pass  # the report tells it
        return self.report()

    def _reach(self) -> None:
        """Map the arena. Nothing of the candidate's is loaded yet: every failure is ours."""
        fields = {
            "arena": self._memory.shared(),
            "cupti": str(self._cupti) if self._cupti else None,
        }
        try:
            self.ask("reach", fields, START_SECONDS)
        except HostFailure as failure:
            said = self._process.output().strip()[-500:]
            raise EvaluatorFault(
                f"the host process could not be set up: {failure.detail}; it said {said!r}"
            ) from failure

    def _load(self) -> None:
        """From here on whatever goes wrong in there, or is said to, is the candidate's."""
        candidate = self._work.candidate
        uses_ffi = candidate.binding is Binding.TVM_FFI
        fields = {
            "library": self._library,
            "symbol": candidate.entry_symbol,
            "binding": candidate.binding.value,
            "parameters": parameter_table(self._work.problem),
            "ffi_library": str(ffi_library()) if uses_ffi else None,
        }
        self.ask("load", fields, START_SECONDS)
        self.refuse_hoarding()

    def _run_within_memory(self, run: Callable[[], None]) -> None:
        """The judge may lack memory because the candidate took it: then that is the finding."""
        try:
            run()
        except torch.OutOfMemoryError:
            self.refuse_hoarding()
            raise

    def ask(self, kind: str, fields: Message, timeout_s: float) -> Reply:
        """One command and its reply. Raises HostFailure, Cancelled."""
        self._sequence += 1
        start_ns = time.perf_counter_ns()
        try:
            self._channel.send(kind, self._sequence, fields)
            message = self._channel.receive(timeout_s, self._check_cancelled)
        except ChannelTimeout:
            self._process.kill(Ending.TIMED_OUT)
            detail = f"no answer to {kind!r} after {timeout_s:g} s, limit reached"
            raise self.fail(Ending.TIMED_OUT, detail) from None
        except ChannelClosed:
            raise self._death(kind) from None
        except ProtocolBreach as breach:
            raise self.fail(Ending.CRASHED, f"host process sent {breach}") from breach
        wall_ns = time.perf_counter_ns() - start_ns
        return Reply(fields=self._accept(message), wall_ns=wall_ns)

    def _check_cancelled(self) -> None:
        if self._work.cancelled():
            raise Cancelled

    def _accept(self, message: Message) -> Message:
        """The candidate may have written it: no kind of reply is anything but its own trouble."""
        kind, sequence = message.get("kind"), message.get("sequence")
        if sequence != self._sequence:
            seen = readable(sequence, 40)
            text = f"host process answered {seen} where {self._sequence} was due"
            raise self.fail(Ending.CRASHED, text)
        if kind == "done":
            return message
        detail = readable(message.get("detail", ""), DETAIL_CHARACTERS)
        if kind == "device_error":
            out_of_memory = message.get("code") == OUT_OF_MEMORY
            ending = Ending.OUT_OF_MEMORY if out_of_memory else Ending.DEVICE_ERROR
            raise self.fail(ending, detail)
        raise self.fail(Ending.CRASHED, detail or f"host process answered {readable(kind, 40)}")

    def _death(self, asked: str) -> HostFailure:
        """The socket closed: wait for the process to be gone and say how it went."""
        report = self._end()
        if report.ending is Ending.FINISHED:
            text = f"the process ended by itself (exit code {report.exit_code}) during {asked!r}"
            return self.fail(Ending.CRASHED, text)
        ending = Ending.CRASHED if report.ending is Ending.TIMED_OUT else report.ending
        text = report.detail if report.ending is not Ending.TIMED_OUT else "it closed its channel"
        return self.fail(ending, text)

    def fail(self, ending: Ending, detail: str) -> HostFailure:
        """The failure to raise; the report will tell it."""
        # Not the exception itself: its traceback would keep every tensor on the way alive.
        self._failed = {"ending": ending, "detail": detail}
        return HostFailure(ending=ending, detail=detail)

    def refuse_hoarding(self) -> None:
        """Raises HostFailure where more GPU memory went since the start than is allowed."""
        taken = 0 if self._free_before is None else self._free_before - _free_beside_torch()
        if taken > ALLOWANCE_BYTES:
            detail = (
                f"took {taken / 2**30:.1f} GiB of GPU memory beside its buffers, "
                f"at most {ALLOWANCE_BYTES / 2**30:.0f} GiB are allowed"
            )
            raise self.fail(Ending.OUT_OF_MEMORY, detail)

    def read_mapped_libraries(self) -> None:
        """Add what the confined processes map now, read from outside; ask at several moments."""
        self._mapped |= set(mapped_libraries(self._process.pid))

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """No thread in there runs meanwhile, so that it cannot slow what the judge measures.

        Kernels that the GPU was given before go on.
        """
        stopped: set[int] = set()
        while fresh := set(processes_of(self._process.pid)) - stopped:
            _send_signal(fresh, signal.SIGSTOP)
            _await_stop(fresh)
            stopped |= fresh
        try:
            yield
        finally:
            _send_signal(stopped, signal.SIGCONT)

    def report(self) -> ProcessReport:
        """End the process if it lives, and say how it went as a whole."""
        if self._ended is None and not self._failed:
            self._say_goodbye()
        elif self._ended is None:
            self._process.kill()
        seen = self._end()
        mapped = tuple(sorted(self._mapped))
        told: dict[str, object] = {"mapped_libraries": mapped, "command": COMMAND_SHOWN}
        if self._failed:
            told |= self._failed
        elif seen.ending is Ending.TIMED_OUT:
            told |= {"ending": Ending.FINISHED, "detail": "ended by the evaluator"}
        return seen.model_copy(update=told)

    def _say_goodbye(self) -> None:
        self._sequence += 1
        try:
            self._channel.send("quit", self._sequence, {})
        except ChannelClosed:
            return


def _send_signal(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _await_stop(processes: set[int]) -> None:
    """A signal takes effect when the kernel gets to it, later on a busy machine."""
    deadline = time.monotonic() + STOP_SECONDS
    while any(map(may_run, processes)) and time.monotonic() < deadline:
        time.sleep(STOP_POLL_SECONDS)


def _free_beside_torch() -> int:
    """Free device memory, as if the judge's own torch held none."""
    return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved()


def put_library(work: Work, folder: Path) -> None:
    """The compiled library, digest checked, where the confined process can read it."""
    artifact = work.artifact("library")
    if artifact is None:
        raise EvaluatorFault("no compiled library among the results: run the build lane first")
    shutil.copyfile(work.path(artifact), folder / LIBRARY_NAME)
    (folder / LIBRARY_NAME).chmod(0o755)


def parameter_table(problem: Problem) -> list[Message]:
    return [
        {
            "name": parameter.name,
            "dtype": parameter.dtype.value,
            "shape": None if parameter.is_scalar else list(parameter.shape),
        }
        for parameter in parameters(problem)
    ]
