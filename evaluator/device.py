"""What GPU stages ask of the machine that measures. No torch here: the judge brings its own.

A stage takes what `Device` measured and decides by itself, so every decision is tested without
a GPU.
"""

from dataclasses import dataclass
from typing import Protocol

from evaluator.bench import Bench
from evaluator.records.evaluation import Environment
from evaluator.records.evidence import (
    CorrectnessEvidence,
    KernelLaunch,
    ProcessReport,
    SanitizerEvidence,
    TimingEvidence,
)
from evaluator.records.verdicts import EvaluatorFault
from evaluator.targets import Target
from evaluator.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """One machine instruction of a profiled kernel; executions are summed over its launches."""

    function: str
    address: int
    text: str
    warp_executions: int
    thread_executions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What Nsight Compute gave; `rows` is None where the report could not be read.

    `trouble` says in words why there are no counts; `report` is the raw report, if one was made.
    """

    tool_version: str
    process: ProcessReport
    log: str
    rows: tuple[ProfileRow, ...] | None
    launches: tuple[KernelLaunch, ...] = ()
    trouble: str = ""
    report: bytes | None = None
    library_sha256: str


class Device(Protocol):
    """The judge of one device. Every method raises EvaluatorFault for failures of ours."""

    def sanitize(self, work: Work) -> SanitizerEvidence: ...
    def check(self, work: Work) -> CorrectnessEvidence: ...
    def profile(self, work: Work) -> Profile: ...

    def time(self, work: Work) -> TimingEvidence:
        """Samples only; latency, speedup and noise are the stage's to compute."""

    def examine(self) -> None:
        """Asked after everything that did not pass: raises EvaluatorFault if it is unfit."""

    def environment(self) -> Environment: ...


def device_of(bench: Bench) -> Device:
    """The bench's device. Raises EvaluatorFault if it has none."""
    if bench.device is None:
        raise EvaluatorFault(
            "this worker has no judge: stages of the gpu lane need one (ptxboard worker --lane gpu)"
        )
    device: Device = bench.device
    return device


def open_device(target: Target, bench: Bench) -> Device:
    """A judge in this process, for the shell; imports torch.

    Raises EvaluatorFault where the target cannot run here, with the fix.
    """
    from evaluator.judge.judge import Judge

    return Judge(target, bench.sandbox, bench.toolchain)
