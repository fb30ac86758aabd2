"""The measuring half of the correctness stage: calls on fresh inputs, everything examined.

In        a compiled candidate, a sandbox, the device
Out       CorrectnessEvidence; its judge is `evaluator.stages.correctness.judge`
Raises    EvaluatorFault, Cancelled
"""

from dataclasses import dataclass

from evaluator.comparison import compare
from evaluator.host.cuda import Driver
from evaluator.judge.buffers import MIN_SLOTS, Buffers, Prepared
from evaluator.judge.host_process import HostProcess
from evaluator.judge.solo import library_digest
from evaluator.problems.tensors import Tensors
from evaluator.records.evidence import (
    CorrectnessEvidence,
    CorrectnessTrial,
)
from evaluator.sandbox import Sandbox
from evaluator.work import Work

TRIALS = 3


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
        for trial in range(TRIALS):
            prepared, outputs = self._trial(trial)
        self.repeat_differs = self._repeat(prepared, outputs)

    def _trial(self, trial: int) -> tuple[Prepared, Tensors]:
        buffers, slot = self.buffers, trial % self.buffers.slot_count
        prepared = buffers.prepare(slot)
        expected = buffers.expected(prepared)
        self._call(prepared, trial)
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
        return prepared, outputs

    def _repeat(self, earlier: Prepared, first: Tensors) -> bool:
        """Whether a call on equal inputs elsewhere gives other outputs, beyond the tolerance."""
        slot = (earlier.slot + 1) % self.buffers.slot_count
        prepared = self.buffers.give(earlier.inputs, slot)
        self.buffers.deliver(prepared.slots)
        self._call(prepared, TRIALS)
        tolerance = self.work.problem.tolerance
        again = self.buffers.outputs(slot)
        return any(compare(name, again[name], first[name], tolerance).bad_count for name in first)

    def _call(self, prepared: Prepared, number: int) -> None:
        self.buffers.synchronise()
        fields = {"arguments": self.buffers.arguments(prepared), "label": f"check {number}"}
        self.host.ask("call", fields, self.call_seconds)
        self.host.refuse_hoarding()
        self.host.read_mapped_libraries()


def check(
    work: Work, sandbox: Sandbox, driver: Driver | None, *, call_seconds: float
) -> CorrectnessEvidence:
    """Run the candidate on secret inputs and record what came out."""
    buffers = Buffers(work.problem, driver, MIN_SLOTS)
    try:
        with HostProcess(work, sandbox, buffers.arena.memory, cupti=False) as host:
            run = Check(work=work, buffers=buffers, host=host, call_seconds=call_seconds, trials=[])
            report = host.carry_out(run.run)
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
