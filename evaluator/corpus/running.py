"""Cases through the product's own pipeline: builds ahead in threads, the device's lane in turn.

Raises nothing for a case: a fault of ours is its outcome.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from evaluator import HARNESS_VERSION
from evaluator.bench import Bench
from evaluator.corpus.cases import Case
from evaluator.corpus.outcomes import Outcome
from evaluator.device import Device
from evaluator.environment import gpu_facts
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.summary import LANE_OF, planned_stages, summarise
from evaluator.records.verdicts import EvaluatorFault, Lane
from evaluator.targets import Target, find_target
from evaluator.work import Work

CALL_SECONDS = 10.0
SANITIZER_SECONDS = 20.0
CORES_PER_BUILD = 4
BUILDS_AHEAD = 16
BUILD_STAGES = frozenset(stage for stage, lane in LANE_OF.items() if lane is Lane.BUILD)

Lend = Callable[[Target], Device | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A case after its build lane, or the fault that ended it."""

    work: Work
    fault: str
    seconds: float


def open_judge(target: Target, bench: Bench) -> Device:
    """A judge in this process with short limits: hangs of the corpus end sooner. Imports torch."""
    from evaluator.judge.judge import Judge

    return Judge(
        target,
        bench.sandbox,
        bench.toolchain,
        call_seconds=CALL_SECONDS,
        sanitizer_seconds=SANITIZER_SECONDS,
    )


def run_cases(
    cases: Sequence[Case], bench: Bench, lend: Lend, *, seconds: float | None = None
) -> Iterator[tuple[Case, Outcome]]:
    """Outcomes in order; none is started after `seconds`. `lend` gives a target's judge or None.

    Builds run ahead only beside a GPU: on `host` they would disturb what is measured.
    """
    start = time.monotonic()
    workers = max(1, (os.cpu_count() or 1) // CORES_PER_BUILD)
    with tempfile.TemporaryDirectory(prefix="ptxboard-corpus-") as folder:
        pool = ThreadPoolExecutor(workers)
        ahead: dict[str, Future[Built]] = {}
        try:
            for number, case in enumerate(cases):
                if seconds is not None and time.monotonic() - start >= seconds:
                    return
                for later in cases[number : number + BUILDS_AHEAD]:
                    if find_target(later.candidate.target).is_gpu and later.name not in ahead:
                        ahead[later.name] = pool.submit(build, later, bench, Path(folder))
                future = ahead.pop(case.name, None)
                built = future.result() if future else build(case, bench, Path(folder))
                yield case, finish(built, bench, lend)
        finally:
            pool.shutdown(cancel_futures=True)


def build(case: Case, bench: Bench, folder: Path) -> Built:
    own = folder / case.name
    own.mkdir()
    work = Work(
        candidate=case.candidate,
        problem=find_problem(case.candidate.problem),
        target=find_target(case.candidate.target),
        folder=own,
    )
    return _through(work, bench, Lane.BUILD, 0.0)


def finish(built: Built, bench: Bench, lend: Lend) -> Outcome:
    """The device's lane where there is a device and something is left to do."""
    if not built.fault and _verdict_is_open(built.work):
        try:
            device = lend(built.work.target)
        except EvaluatorFault as fault:
            return _outcome(replace(built, fault=str(fault)))
        if device is not None:
            built = _through(built.work, replace(bench, device=device), Lane.GPU, built.seconds)
    return _outcome(built)


def _verdict_is_open(work: Work) -> bool:
    return summarise(work.results, planned_stages(is_gpu=work.target.is_gpu)).verdict is None


def _through(work: Work, bench: Bench, lane: Lane, seconds: float) -> Built:
    start, fault = time.monotonic(), ""
    try:
        for result in run_lane(work, bench, lane):
            work = work.with_result(result)
    except EvaluatorFault as error:
        fault = str(error)
    return Built(work=work, fault=fault, seconds=seconds + time.monotonic() - start)


def _outcome(built: Built) -> Outcome:
    work = built.work
    summary = summarise(work.results, planned_stages(is_gpu=work.target.is_gpu))
    seen, score = summary.target_instructions, summary.score
    last = work.results[-1] if work.results else None
    on_device = any(result.stage not in BUILD_STAGES for result in work.results)
    is_shown = seen is not None and summary.verdict is not None
    return Outcome(
        digest=work.candidate.digest,
        date=datetime.now(UTC).date().isoformat(),
        harness_version=HARNESS_VERSION,
        device=gpu_facts()["device_name"] if on_device and work.target.is_gpu else None,
        seconds=round(built.seconds, 1),
        verdict=None if built.fault else summary.verdict,
        stage=last.stage if last else None,
        message=summary.message,
        fault=built.fault,
        target_instructions=seen.status if seen and is_shown else None,
        tier=seen.tier if seen and is_shown else None,
        work_share=seen.work_share if seen and is_shown else None,
        latency_ns=score.latency_ns if score else None,
        speedup=score.speedup if score else None,
    )
