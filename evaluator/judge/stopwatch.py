"""How spans are read on each kind of target: CUPTI on a GPU, the wall clock on the CPU.

Also what comes before each timed call: the flush of caches that the judge owns.
"""

import time
from collections.abc import Callable
from typing import Protocol

import torch

from evaluator.host.cuda import Driver
from evaluator.host.cupti import MAX_RECORDS, Recorder
from evaluator.judge.activity import (
    Activity,
    Attribution,
    MalformedActivity,
    Seen,
    Window,
    attribute,
    parse_activities,
    parse_windows,
)
from evaluator.judge.confinement import cupti_library
from evaluator.records.verdicts import EvaluatorFault

HOST_FLUSH_BYTES = 64 << 20
L2_FLUSHES = 2


class Stopwatch(Protocol):
    """`timer` names it in the evidence; `collects` says whether device records are expected."""

    timer: str
    collects: bool
    flush_bytes: int

    def flush(self) -> None:
        """Push everything of the last call out of the caches, and wait for it."""

    def probe(self) -> None:
        """A tiny piece of work on the device: returns once the judge has the device again."""

    def time(self, label: str, call: Callable[[], object]) -> Window:
        """A window around a call of the judge's own."""

    def start(self) -> None: ...

    def stop(self, windows: list[Window]) -> Attribution:
        """What the device did in the judge's own windows since `start`."""


class CuptiStopwatch:
    """Device records of the judge's own process, for the baseline."""

    timer = "cupti"
    collects = True

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._recorder = Recorder(str(cupti_library()))
        properties = torch.cuda.get_device_properties(0)
        self.flush_bytes = L2_FLUSHES * properties.L2_cache_size
        self._buffer = torch.empty(self.flush_bytes, dtype=torch.uint8, device="cuda")
        self._tiny = torch.zeros(1, dtype=torch.uint8, device="cuda")

    def flush(self) -> None:
        self._driver.call("cuCtxResetPersistingL2Cache")
        self._buffer.add_(1)
        torch.cuda.synchronize()

    def probe(self) -> None:
        self._tiny.add_(1)
        torch.cuda.synchronize()

    def time(self, label: str, call: Callable[[], object]) -> Window:
        torch.cuda.synchronize()
        start_ns = self._recorder.now_ns()
        call()
        torch.cuda.synchronize()
        return Window(label=label, start_ns=start_ns, end_ns=self._recorder.now_ns())

    def start(self) -> None:
        self._recorder.start()

    def stop(self, windows: list[Window]) -> Attribution:
        records = self._recorder.take()
        self._recorder.stop()
        if self._recorder.dropped:
            raise EvaluatorFault(f"CUPTI dropped {self._recorder.dropped} records of the baseline")
        found = attribute(windows, parse_activities(records))
        for label, seen in found.seen.items():
            if not seen.activities:
                raise EvaluatorFault(f"baseline {label}: CUPTI collected no records")
        return found


class WallStopwatch:
    """The CPU's clock; one window is one span, nothing else is known."""

    timer = "wall"
    collects = False
    flush_bytes = HOST_FLUSH_BYTES

    def __init__(self) -> None:
        self._buffer = torch.zeros(HOST_FLUSH_BYTES, dtype=torch.uint8)

    def flush(self) -> None:
        self._buffer.add_(1)

    def probe(self) -> None:
        return

    def time(self, label: str, call: Callable[[], object]) -> Window:
        start_ns = time.perf_counter_ns()
        call()
        return Window(label=label, start_ns=start_ns, end_ns=time.perf_counter_ns())

    def start(self) -> None:
        return

    def stop(self, windows: list[Window]) -> Attribution:
        return wall_attribution(windows)


def wall_attribution(windows: list[Window]) -> Attribution:
    """Each window as one activity of its own length."""
    seen = {
        window.label: Seen(
            window=window,
            activities=(
                Activity(kind="host", name="run", start_ns=window.start_ns, end_ns=window.end_ns),
            ),
        )
        for window in windows
    }
    return Attribution(seen=seen, stray_count=0, unstamped_count=0)


def host_attribution(fields: dict[str, object], *, collects: bool) -> Attribution:
    """The same from a host's answer to `collect`. Raises MalformedActivity."""
    if fields.get("dropped"):
        raise MalformedActivity(f"more than {MAX_RECORDS} kernels and copies of one trial")
    windows = parse_windows(fields.get("windows"))
    if not collects:
        return wall_attribution(windows)
    return attribute(windows, parse_activities(fields.get("records")))


def stopwatch_for(driver: Driver | None) -> Stopwatch:
    return CuptiStopwatch(driver) if driver else WallStopwatch()
