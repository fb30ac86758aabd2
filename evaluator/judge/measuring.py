"""The measuring half of the timing stage: candidate and baseline in turn, by one protocol.

Per trial: warm-up; blocks of calls, candidate and baseline alternating in order; a burst of
back-to-back calls over all slots and single calls without a flush, both between two readings of
the judge's own clock. Within a bracket the judge first hands over all slots in one copy and at the
end takes them back in one, so that neither work done before the clock starts nor an answer sent
early wins anything; what its own copying takes was measured before the candidate was loaded. The
baseline was measured then too, and while its blocks run the candidate's process is frozen.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median

from evaluator.comparison import compare
from evaluator.judge.activity import Attribution, MalformedActivity, Window
from evaluator.judge.arena import Arena
from evaluator.judge.buffers import Buffers, Prepared
from evaluator.judge.host_process import HostProcess
from evaluator.judge.readings import Readings
from evaluator.judge.statistics import block_size
from evaluator.judge.stopwatch import Stopwatch, host_attribution
from evaluator.problems.baselines import baseline
from evaluator.problems.tensors import Tensors, make_inputs
from evaluator.records.evidence import (
    BatchBracket,
    DeviceReading,
    Ending,
    KernelLaunch,
    TimingSample,
    VerifiedCall,
)
from evaluator.work import Work

SLOT_BUDGET_BYTES = 8 << 30
HOST_SLOT_BUDGET_BYTES = 64 << 20
BASELINE_SLOTS = 2
BURST_NS = 20_000_000
MIN_BURST_CALLS = 3
LONG_NS = 120_000_000_000
FEWEST_CALLS, FEWEST_WARMUP = 10, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many calls of what; `verified` timed calls of each trial are checked at once.

    `alone`: calls of the baseline, and rounds of copying, before the candidate is loaded.
    """

    trials: int
    warmup: int
    calls: int
    verified: int
    bursts: int
    singles: int
    alone: int = 10

    def for_calls_of(self, wall_ns: int) -> "Plan":
        """Fewer calls where all of them would take longer than LONG_NS; never fewer than FEWEST."""
        whole_ns = wall_ns * self.trials * (self.warmup + self.calls)
        if whole_ns <= LONG_NS:
            return self
        calls = min(self.calls, max(FEWEST_CALLS, round(self.calls * LONG_NS / whole_ns)))
        return replace(self, warmup=FEWEST_WARMUP, calls=calls, bursts=1, singles=1)

    def blocks(self) -> Iterator[range]:
        size = block_size(self.calls)
        for start in range(0, self.calls, size):
            yield range(start, min(start + size, self.calls))


GPU_PLAN = Plan(trials=3, warmup=10, calls=50, verified=2, bursts=2, singles=3)
HOST_PLAN = Plan(trials=3, warmup=3, calls=20, verified=2, bursts=2, singles=6)


@dataclass(slots=True, kw_only=True)
class Measured:
    """Raw results; everything that is derived from them belongs to the stage's judge."""

    samples: list[TimingSample] = field(default_factory=list)
    baseline_samples: list[TimingSample] = field(default_factory=list)
    baseline_alone_ns: list[int] = field(default_factory=list)
    batches: list[BatchBracket] = field(default_factory=list)
    verified: list[VerifiedCall] = field(default_factory=list)
    launch_lists: list[tuple[KernelLaunch, ...]] = field(default_factory=list)
    kernel_symbols: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """What handing over and taking back takes: measured for one slot and for all of them."""

    one_ns: float
    all_ns: float
    slot_count: int

    def of_ns(self, count: int) -> int:
        each_ns = (self.all_ns - self.one_ns) / (self.slot_count - 1)
        return round(self.one_ns + each_ns * (count - 1))


@dataclass(slots=True, kw_only=True)
class Measurement:
    """One host, one plan; fills `measured` as it goes."""

    work: Work
    plan: Plan
    buffers: Buffers
    host: HostProcess
    stopwatch: Stopwatch
    readings: Readings | None
    call_seconds: float
    measured: Measured
    baseline_inputs: list[Tensors] = field(default_factory=list)
    copying: Copying | None = None
    _turn: int = 0

    def measure_alone(self) -> None:
        """The baseline and the judge's own copying, before anything of the candidate's runs."""
        problem, device = self.work.problem, self.buffers.device
        for _ in range(BASELINE_SLOTS):
            self.baseline_inputs.append(make_inputs(problem, secrets.randbits(62), device))
        self._warm_baseline()
        found, windows = self._baseline_calls(range(self.plan.alone), lambda: None)
        self.measured.baseline_alone_ns += [found.seen[w.label].span_ns for w in windows]
        count = self.buffers.slot_count
        for slot in range(count):
            self.buffers.make(slot)
        one_ns, all_ns = self._copying_ns(range(1)), self._copying_ns(range(count))
        self.copying = Copying(one_ns=one_ns, all_ns=all_ns, slot_count=count)

    def _copying_ns(self, slots: range) -> float:
        """Median time of these slots out and back."""
        rounds = []
        for _ in range(self.plan.alone):
            self.stopwatch.probe()
            start_ns = time.perf_counter_ns()
            self._deliver(slots)
            self._take(slots)
            rounds.append(time.perf_counter_ns() - start_ns)
        return median(rounds)

    def _deliver(self, slots: range) -> None:
        self.buffers.deliver(slots)
        self.buffers.synchronise()

    def _take(self, slots: range) -> Arena:
        taken = self.buffers.take(slots)
        self.stopwatch.probe()
        return taken

    def run(self) -> None:
        self.plan = self.plan.for_calls_of(self._first_call())
        for trial in range(self.plan.trials):
            self._trial(trial)

    def _first_call(self) -> int:
        """Nanoseconds on the judge's clock; includes what a candidate sets up once."""
        for label in ("first", "second"):
            wall_ns = self._ask_call(self.buffers.prepare(self._next_slot()), label)
        self.host.refuse_hoarding()
        return wall_ns

    def _trial(self, trial: int) -> None:
        self._warm_up()
        chosen = _choose(self.plan.calls, self.plan.verified)
        walls: dict[str, tuple[int, DeviceReading | None]] = {}
        for number, block in enumerate(self.plan.blocks()):
            if number % 2:
                self._baseline_block(trial, block)
            for call in block:
                self._timed_call(trial, call, walls, verify=call in chosen)
            if not number % 2:
                self._baseline_block(trial, block)
        self._collect(trial, walls)
        for burst in range(self.plan.bursts):
            self._burst(trial, burst)
        for single in range(self.plan.singles):
            self._single(trial, single)
        self.host.read_mapped_libraries()

    def _warm_up(self) -> None:
        for number in range(self.plan.warmup):
            self._ask_call(self.buffers.prepare(self._next_slot()), f"warm-up {number}")
        self.host.ask("collect", {}, self.call_seconds)
        with self.host.frozen():
            self._warm_baseline()

    def _warm_baseline(self) -> None:
        run = baseline(self.work.problem)
        for call in range(self.plan.warmup):
            run(**self.baseline_inputs[call % BASELINE_SLOTS])
        self.buffers.synchronise()

    def _timed_call(
        self,
        trial: int,
        call: int,
        walls: dict[str, tuple[int, DeviceReading | None]],
        *,
        verify: bool,
    ) -> None:
        prepared = self.buffers.prepare(self._next_slot())
        self.host.ask("settle", {}, self.call_seconds)
        self.stopwatch.flush()
        wall_ns = self._ask_call(prepared, _label(trial, call))
        if verify:
            seen = self.buffers.take(prepared.slots)
            self.measured.verified.append(self._examine(trial, call, prepared, seen))
        walls[_label(trial, call)] = (wall_ns, self._reading())

    def _ask_call(self, prepared: Prepared, label: str) -> int:
        self.buffers.synchronise()
        fields = {"arguments": self.buffers.arguments(prepared), "label": label}
        return self.host.ask("call", fields, self.call_seconds).wall_ns

    def _examine(self, trial: int, call: int, prepared: Prepared, seen: Arena) -> VerifiedCall:
        """What a call left in its slot, as it was taken, against the reference."""
        expected, outputs = self.buffers.expected(prepared), seen.outputs(prepared.slot)
        tolerance = self.work.problem.tolerance
        errors = [compare(name, outputs[name], expected[name], tolerance) for name in outputs]
        worst = max(errors, key=lambda error: error.bad_count)
        return VerifiedCall(
            trial=trial,
            call=call,
            bad_count=worst.bad_count,
            output=worst.name if worst.bad_count else None,
            mutated_inputs=self.buffers.mutated_inputs(prepared, seen),
            broken_guards=seen.broken_guards(prepared.slot),
        )

    def _collect(self, trial: int, walls: dict[str, tuple[int, DeviceReading | None]]) -> None:
        found = self._attribution()
        for call in range(self.plan.calls):
            label = _label(trial, call)
            seen = found.seen.get(label)
            if seen is None:
                raise self.host.fail(Ending.CRASHED, f"host process left out window {label!r}")
            wall_ns, reading = walls[label]
            if self.stopwatch.collects:
                self.measured.launch_lists.append(seen.launches)
            last = call == self.plan.calls - 1
            self.measured.samples.append(
                TimingSample(
                    trial=trial,
                    call=call,
                    span_ns=seen.span_ns,
                    busy_ns=seen.busy_ns,
                    wall_ns=wall_ns,
                    launch_count=len(seen.activities),
                    stray_count=found.stray_count if last else 0,
                    unstamped_count=found.unstamped_count if last else 0,
                    reading=reading,
                )
            )

    def _attribution(self) -> Attribution:
        fields = self.host.ask("collect", {}, self.call_seconds).fields
        try:
            found = host_attribution(fields, collects=self.stopwatch.collects)
        except MalformedActivity as error:
            raise self.host.fail(Ending.CRASHED, f"host process sent {error}") from error
        self.measured.kernel_symbols |= found.kernel_symbols
        return found

    def _baseline_calls(
        self, calls: range, after: Callable[[], None]
    ) -> tuple[Attribution, list[Window]]:
        run = baseline(self.work.problem)
        windows: list[Window] = []
        self.stopwatch.start()
        for call in calls:
            inputs = self.baseline_inputs[call % BASELINE_SLOTS]
            self.stopwatch.flush()
            windows.append(self.stopwatch.time(str(call), lambda given=inputs: run(**given)))  # type: ignore[misc]
            after()
        return self.stopwatch.stop(windows), windows

    def _baseline_block(self, trial: int, block: range) -> None:
        readings: list[DeviceReading | None] = []
        with self.host.frozen():
            found, windows = self._baseline_calls(block, lambda: readings.append(self._reading()))
        for call, window, reading in zip(block, windows, readings, strict=True):
            seen = found.seen[window.label]
            self.measured.baseline_samples.append(
                TimingSample(
                    trial=trial,
                    call=call,
                    span_ns=seen.span_ns,
                    busy_ns=seen.busy_ns,
                    wall_ns=window.end_ns - window.start_ns,
                    launch_count=len(seen.activities),
                    unstamped_count=found.unstamped_count,
                    reading=reading,
                )
            )

    def _burst(self, trial: int, burst: int) -> None:
        """Every call on its own slot, in random order, so that none can be left out."""
        count = self._burst_calls()
        first = secrets.randbelow(self.buffers.slot_count - count + 1)
        slots = range(first, first + count)
        self._bracket(trial, slots, f"burst {trial} {burst}", self.plan.calls + burst)

    def _burst_calls(self) -> int:
        """About BURST_NS of work: the power limit slows longer bursts more than single calls."""
        span_ns = median(sample.span_ns for sample in self.measured.samples) or 1
        wanted = max(MIN_BURST_CALLS, round(BURST_NS / span_ns))
        return min(wanted, self.buffers.slot_count)

    def _single(self, trial: int, single: int) -> None:
        number, slot = self.plan.calls + self.plan.bursts + single, self._next_slot()
        self._bracket(trial, range(slot, slot + 1), f"single {trial} {single}", number)

    def _bracket(self, trial: int, slots: range, label: str, number: int) -> None:
        prepared = [self.buffers.make(slot) for slot in slots]
        secrets.SystemRandom().shuffle(prepared)
        fields = {"calls": [self.buffers.arguments(one) for one in prepared], "label": label}
        self.host.ask("settle", {}, self.call_seconds)
        self.stopwatch.probe()
        start_ns = time.perf_counter_ns()
        self._deliver(slots)
        self.host.ask("batch", fields, self.call_seconds * MIN_BURST_CALLS)
        taken = self._take(slots)
        whole_ns = time.perf_counter_ns() - start_ns
        self._record_bracket(trial, len(slots), label, whole_ns)
        for one in prepared:
            self.measured.verified.append(self._examine(trial, number, one, taken))

    def _record_bracket(self, trial: int, call_count: int, label: str, whole_ns: int) -> None:
        assert self.copying is not None
        copying_ns = min(self.copying.of_ns(call_count), whole_ns)
        seen = self._attribution().seen.get(label)
        self.measured.batches.append(
            BatchBracket(
                trial=trial,
                call_count=call_count,
                wall_ns=whole_ns - copying_ns,
                copying_ns=copying_ns,
                warm_span_ns=seen.span_ns if seen and self.stopwatch.collects else None,
            )
        )

    def _reading(self) -> DeviceReading | None:
        return self.readings.read() if self.readings else None

    def _next_slot(self) -> int:
        self._turn += 1
        return self._turn % self.buffers.slot_count


def _choose(count: int, chosen: int) -> frozenset[int]:
    return frozenset(secrets.SystemRandom().sample(range(count), min(chosen, count)))


def _label(trial: int, call: int) -> str:
    return f"{trial}.{call}"
