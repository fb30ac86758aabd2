"""The judge of one device: everything that stages measure is measured by it, one job at a time."""

import threading
from collections import Counter
from statistics import median

import torch

from evaluator.device import Profile
from evaluator.environment import describe_environment
from evaluator.host.cuda import CudaError, Driver
from evaluator.judge.activity import readable_launches
from evaluator.judge.buffers import MIN_SLOTS, Buffers, slots_within
from evaluator.judge.checking import check
from evaluator.judge.host_process import HostProcess
from evaluator.judge.measuring import (
    GPU_PLAN,
    HOST_PLAN,
    HOST_SLOT_BUDGET_BYTES,
    SLOT_BUDGET_BYTES,
    Measured,
    Measurement,
    Plan,
)
from evaluator.judge.profiling import profile
from evaluator.judge.readings import Readings
from evaluator.judge.sanitizing import SANITIZER_SECONDS, sanitize
from evaluator.judge.solo import library_digest
from evaluator.judge.stopwatch import Stopwatch, stopwatch_for
from evaluator.judge.tolerances import baseline_excess_of, excess_of, speed_of_light_ns
from evaluator.problems.baselines import baseline_version, chosen_baseline
from evaluator.problems.prototypes import parameters
from evaluator.records.evaluation import Environment
from evaluator.records.evidence import (
    CorrectnessEvidence,
    ProcessReport,
    SanitizerEvidence,
    TimingEvidence,
)
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import Sandbox
from evaluator.targets import Target
from evaluator.toolchain import Toolchain
from evaluator.work import Work

CALL_SECONDS = 30.0
ANSWER_SECONDS = 20.0


class Judge:
    """Implements `evaluator.device.Device`.

    Raises EvaluatorFault at the start where the target's device cannot be used.
    """

    def __init__(
        self,
        target: Target,
        sandbox: Sandbox,
        toolchain: Toolchain,
        *,
        call_seconds: float = CALL_SECONDS,
        sanitizer_seconds: float = SANITIZER_SECONDS,
        plan: Plan | None = None,
    ) -> None:
        self.target, self._sandbox, self._toolchain = target, sandbox, toolchain
        self._call_seconds, self._sanitizer_seconds = call_seconds, sanitizer_seconds
        self._plan = plan or (GPU_PLAN if target.is_gpu else HOST_PLAN)
        self._driver = _driver() if target.is_gpu else None
        self._readings = Readings() if target.is_gpu else None
        self._stopwatch: Stopwatch | None = None
        if not target.is_gpu:
            torch.set_num_threads(1)  # the candidate has one core, so the baseline has one too

    def sanitize(self, work: Work) -> SanitizerEvidence:
        return sanitize(work, self._sandbox, self._toolchain, seconds=self._sanitizer_seconds)

    def check(self, work: Work) -> CorrectnessEvidence:
        return check(work, self._sandbox, self._driver, call_seconds=self._call_seconds)

    def profile(self, work: Work) -> Profile:
        return profile(work, self._sandbox, self._toolchain)

    def time(self, work: Work) -> TimingEvidence:
        stopwatch = self._watch()
        budget = SLOT_BUDGET_BYTES if self._driver else HOST_SLOT_BUDGET_BYTES
        count = max(MIN_SLOTS, slots_within(parameters(work.problem), budget))
        buffers = Buffers(work.problem, self._driver, count)
        measured = Measured()
        memory = buffers.arena.memory
        try:
            with HostProcess(work, self._sandbox, memory, cupti=stopwatch.collects) as host:
                measurement = Measurement(
                    work=work,
                    plan=self._plan,
                    buffers=buffers,
                    host=host,
                    stopwatch=stopwatch,
                    readings=self._readings,
                    call_seconds=self._call_seconds,
                    measured=measured,
                )
                measurement.measure_alone()
                report = host.carry_out(measurement.run)
        finally:
            buffers.close()
        return self._timing_evidence(work, measurement.plan, measured, report, stopwatch)

    def _timing_evidence(
        self,
        work: Work,
        plan: Plan,
        measured: Measured,
        report: ProcessReport,
        stopwatch: Stopwatch,
    ) -> TimingEvidence:
        problem, excess = work.problem, excess_of(self.target)
        counts = Counter(measured.launch_lists)
        usual = counts.most_common(1)[0][0] if counts else ()
        return TimingEvidence(
            timer=stopwatch.timer,
            process=report,
            planned_trials=plan.trials,
            planned_calls=plan.calls,
            warmup_calls=plan.warmup,
            samples=tuple(measured.samples),
            baseline=chosen_baseline(problem, self._device_name()),
            baseline_version=baseline_version(problem, self._device_name()),
            baseline_samples=tuple(measured.baseline_samples),
            batches=tuple(measured.batches),
            verified=tuple(measured.verified),
            launches=readable_launches(usual, self._sandbox),
            launch_sets=len(counts),
            kernel_symbols=tuple(sorted(measured.kernel_symbols)),
            flush_bytes=stopwatch.flush_bytes,
            library_sha256=library_digest(work),
            noise_limit=self.target.noise_limit,
            speed_of_light_ns=speed_of_light_ns(
                problem.flop_count, problem.byte_count, self.target
            ),
            tolerated_batch_excess=excess.share,
            tolerated_batch_excess_ns=excess.per_call_ns,
            tolerated_bracket_ns=excess.per_bracket_ns,
            baseline_alone_ns=median(measured.baseline_alone_ns),
            tolerated_baseline_excess=baseline_excess_of(self.target),
        )

    def examine(self) -> None:
        """A tiny known operation must come back right and soon."""
        answers: list[float] = []
        asked = threading.Thread(target=lambda: answers.append(self._small_sum()), daemon=True)
        asked.start()
        asked.join(ANSWER_SECONDS)
        if answers != [10.0]:
            seen = f"answered {answers[0]}" if answers else f"no answer in {ANSWER_SECONDS:g} s"
            raise EvaluatorFault(
                f"the device is unfit: a sum that is 10 {seen}; take this worker out of service "
                "and check the driver's log for Xid messages"
            )

    def _small_sum(self) -> float:
        try:
            return float(torch.arange(5, device=self._device_name()).sum().item())
        except RuntimeError:
            return float("nan")

    def _device_name(self) -> str:
        return "cuda" if self._driver else "cpu"

    def _watch(self) -> Stopwatch:
        if self._stopwatch is None:
            self._stopwatch = stopwatch_for(self._driver)
        return self._stopwatch

    def environment(self) -> Environment:
        return describe_environment(self._toolchain, self._sandbox)


def _driver() -> Driver:
    try:
        torch.zeros(1, device="cuda")
        return Driver()
    except (OSError, CudaError, RuntimeError, AssertionError) as error:
        raise EvaluatorFault(f"no usable GPU on this machine: {error}") from error
