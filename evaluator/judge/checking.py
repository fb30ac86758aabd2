"""The measuring half of the correctness stage: calls on fresh inputs, everything examined.

In        a compiled candidate, a sandbox, the device
Out       CorrectnessEvidence; its judge is `evaluator.stages.correctness.judge`
Raises    EvaluatorFault, Cancelled
"""

from dataclasses import dataclass

from evaluator.comparison import compare
from evaluator.host.cuda import Driver
from evaluator.judge.buffers import MIN_SLOTS, Buffers
from evaluator.judge.host_process import HostFailure, HostProcess
from evaluator.judge.solo import library_digest
from evaluator.problems.tensors import Tensors
from evaluator.records.evidence import (
    CorrectnessEvidence,
    CorrectnessTrial,
    Ending,
)
from evaluator.sandbox import Sandbox
from evaluator.work import Work

TRIALS = 3
ALLOWANCE_BYTES = 16 << 30


@dataclass(slots=True, kw_only=True)
class Check:
    """One run of the stage; `trials` grows as calls end, so that a crash keeps what was seen."""

    work: Work
    buffers: Buffers
    host: HostProcess
    call_seconds: float
    trials: list[CorrectnessTrial]
    repeat_differs: bool | None = None

    def run(self) -> None:
        self.host.open()
        outputs: Tensors = {}
        for trial in range(TRIALS):
            outputs = self._trial(trial)
        self.repeat_differs = self._repeat(TRIALS - 1, outputs)

    def _trial(self, trial: int) -> Tensors:
        buffers, slot = self.buffers, trial % self.buffers.slot_count
        buffers.prepare(slot)
        prepared = buffers.keep(slot)
        expected = buffers.expected(prepared)
        self._call(slot, trial)
        outputs = buffers.outputs(slot)
        errors = buffers.errors(outputs, expected, buffers.fp32(prepared))
        self.trials.append(
            CorrectnessTrial(
                trial=trial,
                outputs=errors,
                mutated_inputs=buffers.mutated_inputs(prepared),
                broken_guards=buffers.broken_guards(slot),
            )
        )
        return outputs

    def _repeat(self, trial: int, first: Tensors) -> bool:
        """Whether a call on equal inputs elsewhere gives other outputs, beyond the tolerance."""
        source = trial % self.buffers.slot_count
        target = (trial + 1) % self.buffers.slot_count
        self.buffers.copy_inputs(source, target)
        self._call(target, trial + 1)
        tolerance = self.work.problem.tolerance
        again = self.buffers.outputs(target)
        return any(compare(name, again[name], first[name], tolerance).bad_count for name in first)

    def _call(self, slot: int, number: int) -> None:
        self.buffers.synchronise()
        fields = {"arguments": self.buffers.arguments(slot), "label": f"check {number}"}
        self.host.ask("call", fields, self.call_seconds)
        self._refuse_hoarding()

    def _refuse_hoarding(self) -> None:
        taken = self.host.device_bytes_taken()
        if taken is not None and taken > ALLOWANCE_BYTES:
            detail = (
                f"took {taken / 2**30:.1f} GiB of GPU memory beside its buffers, "
                f"at most {ALLOWANCE_BYTES / 2**30:.0f} GiB are allowed"
            )
            raise self.host.fail(Ending.OUT_OF_MEMORY, detail)


def check(
    work: Work, sandbox: Sandbox, driver: Driver | None, *, call_seconds: float
) -> CorrectnessEvidence:
    """Run the candidate on secret inputs and record what came out."""
    buffers = Buffers(work.problem, driver, MIN_SLOTS)
    try:
        with HostProcess(work, sandbox, buffers.arena.memory, cupti=False) as host:
            run = Check(work=work, buffers=buffers, host=host, call_seconds=call_seconds, trials=[])
            try:
                run.run()
                host.read_mapped_libraries()
            except HostFailure:
                pass  # the report tells it
            report = host.report()
    finally:
        buffers.close()
    return CorrectnessEvidence(
        process=report,
        tolerance=work.problem.tolerance,
        planned_trials=TRIALS,
        trials=tuple(run.trials),
        library_sha256=library_digest(work),
        repeat_differs=run.repeat_differs,
    )
