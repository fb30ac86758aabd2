"""One attempt from claim to completion: fetch, run the lane, report each stage, complete.

The heartbeat runs beside the lane; it never waits for the candidate, which runs in processes of
its own. A stale fence or a cancel stops the lane at the next stage or sooner.
"""

import logging
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from evaluator.records.evaluation import AnyStageResult, Environment, JobOrder
from evaluator.records.evidence import Artifact
from evaluator.records.verdicts import EvaluatorFault
from evaluator.records.worker_api import (
    HEARTBEAT_SECONDS,
    Completion,
    Heartbeat,
    Outcome,
    StagePost,
)
from evaluator.targets import find_target
from evaluator.work import Work
from evaluator.worker.client import SiteAway, SiteClient, SiteRefused, StaleFence
from evaluator.worker.outbox import Outbox

log = logging.getLogger(__name__)

RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
FETCH_SECONDS = 120.0

LaneRunner = Callable[[Work], Iterator[AnyStageResult]]


@dataclass(slots=True, kw_only=True)
class Lease:
    """Whether the attempt is still ours; shared by the heartbeat and the lane."""

    stale: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def lost(self) -> bool:
        return self.stale.is_set() or self.cancelled.is_set()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRunner:
    """What every attempt of a worker shares. `stopping` is set when the worker shuts down."""

    client: SiteClient
    root: Path
    run_lane: LaneRunner
    environment: Callable[[], Environment]
    stopping: threading.Event
    heartbeat_seconds: float = HEARTBEAT_SECONDS

    def run(self, order: JobOrder) -> Outcome | None:
        """Carry out one claimed attempt; None when the site did not want the result any more."""
        outbox = Outbox.create(self.root / "outbox", attempt=order.attempt, fence=order.fence)
        lease = Lease()
        beat = threading.Thread(target=self._beat, args=(order, lease), daemon=True)
        beat.start()
        folder = self.root / "attempts" / order.attempt
        try:
            outcome, message = self._run_stages(order, folder, outbox, lease)
            if lease.stale.is_set():
                return None
            completion = Completion(
                fence=order.fence,
                outcome=outcome,
                environment=self.environment(),
                message=message[:4000],
            )
            outbox.put(f"attempts/{order.attempt}/complete", completion.to_json())
            return outcome if self._deliver_completion(outbox) else None
        finally:
            lease.ended.set()
            beat.join(timeout=self.heartbeat_seconds + 1)
            shutil.rmtree(folder, ignore_errors=True)

    def _run_stages(
        self, order: JobOrder, folder: Path, outbox: Outbox, lease: Lease
    ) -> tuple[Outcome, str]:
        try:
            work = self._prepare(order, folder, lease)
            for result in self.run_lane(work):
                self._report(order, work, result, outbox)
                self._deliver_stage(outbox, lease)
                if lease.lost or self.stopping.is_set():
                    break
        except EvaluatorFault as fault:
            if not (lease.lost or self.stopping.is_set()):
                log.error("attempt %s faulted: %s", order.attempt, fault)
                return Outcome.FAULTED, str(fault)
        except Exception:
            log.exception("attempt %s: unexpected error", order.attempt)
            return Outcome.FAULTED, f"unexpected error\n{traceback.format_exc(limit=8)}"
        if lease.lost or self.stopping.is_set():
            return Outcome.RELEASED, "cancelled" if lease.lost else "the worker is shutting down"
        return Outcome.FINISHED, ""

    def _prepare(self, order: JobOrder, folder: Path, lease: Lease) -> Work:
        folder.mkdir(parents=True, exist_ok=True)
        for artifact in order.build_artifacts:
            (folder / artifact.sha256).write_bytes(self._fetch(order, artifact, lease))
        return Work(
            candidate=order.candidate,
            problem=order.problem,
            target=find_target(order.candidate.target),
            folder=folder,
            results=order.stages,
            cancelled=lambda: lease.lost or self.stopping.is_set(),
        )

    def _fetch(self, order: JobOrder, artifact: Artifact, lease: Lease) -> bytes:
        """Tried again while the site is away, at most FETCH_SECONDS. Raises EvaluatorFault."""
        deadline = time.monotonic() + FETCH_SECONDS
        for number in count():
            try:
                return self.client.get_artifact(
                    artifact.sha256, attempt=order.attempt, fence=order.fence
                )
            except SiteAway as away:
                log.warning("%s: %s", artifact.role, away)
                pause = _pause(number)
                late = time.monotonic() + pause > deadline
                if late or lease.lost or self.stopping.wait(pause):
                    raise EvaluatorFault(f"{artifact.role} could not be fetched: {away}") from away
            except (StaleFence, SiteRefused) as error:
                raise EvaluatorFault(f"{artifact.role} could not be fetched: {error}") from error
        raise AssertionError("unreachable")

    def _report(self, order: JobOrder, work: Work, result: AnyStageResult, outbox: Outbox) -> None:
        log.info("attempt %s: %s %s", order.attempt, result.stage, result.verdict)
        post = StagePost(fence=order.fence, result=result)
        artifacts = tuple(
            (artifact, work.path(artifact).read_bytes()) for artifact in result.artifacts
        )
        outbox.put(f"attempts/{order.attempt}/stages", post.to_json(), artifacts)

    def _deliver_stage(self, outbox: Outbox, lease: Lease) -> None:
        """Send now if the site answers; what it refuses as malformed is a fault of ours."""
        try:
            outbox.deliver(self.client)
        except SiteAway as away:
            log.warning("results wait on disk: %s", away)
        except StaleFence as stale:
            log.warning("attempt %s: %s", outbox.attempt, stale)
            lease.stale.set()
        except SiteRefused as refusal:
            outbox.clear()
            raise EvaluatorFault(f"the site refused a stage: {refusal}") from refusal

    def _deliver_completion(self, outbox: Outbox) -> bool:
        """Try until the site is back; while the worker stops, once: the next start delivers."""
        for number in count():
            try:
                outbox.deliver(self.client)
            except SiteAway as away:
                log.warning("results wait on disk: %s", away)
                if self.stopping.wait(_pause(number)):
                    return False
                continue
            except (StaleFence, SiteRefused) as refusal:
                log.warning("attempt %s: %s", outbox.attempt, refusal)
                outbox.discard()
                return False
            outbox.discard()
            return True
        raise AssertionError("unreachable")

    def _beat(self, order: JobOrder, lease: Lease) -> None:
        while not lease.ended.wait(self.heartbeat_seconds):
            try:
                beat = Heartbeat(fence=order.fence)
                if self.client.heartbeat(order.attempt, beat).cancel:
                    lease.cancelled.set()
            except SiteAway as away:
                log.warning("heartbeat: %s", away)
            except (StaleFence, SiteRefused) as refusal:
                log.warning("attempt %s is no longer ours: %s", order.attempt, refusal)
                lease.stale.set()
                return


def _pause(number: int) -> float:
    """Seconds before try `number` + 1: longer and longer, up to the last of RETRY_SECONDS."""
    return RETRY_SECONDS[min(number, len(RETRY_SECONDS) - 1)]
