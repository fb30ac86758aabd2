"""`ptxboard worker`: presence, leftovers, then doorbells from Celery or plain polling."""

import fcntl
import logging
import os
import platform
import secrets
import shutil
import signal
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluator.doctor import Ability, examine_machine, hindrances
from evaluator.environment import describe_environment
from evaluator.judge.client import JudgeClient
from evaluator.pipeline import Bench, run_lane
from evaluator.records.verdicts import EvaluatorFault, Lane
from evaluator.records.worker_api import HEARTBEAT_SECONDS, WorkerHello, WorkerState
from evaluator.targets import TARGETS, find_target
from evaluator.worker.attempt import AttemptRunner, LaneRunner
from evaluator.worker.celery_app import worker_app
from evaluator.worker.client import SiteAway, SiteClient, SiteRefused
from evaluator.worker.outbox import Outbox, deliver_leftover, find_leftovers

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
EXIT_FAULT = 3


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `ptxboard worker`."""
    parser.add_argument(
        "--target", action="append", default=[], choices=list(TARGETS), help="run on this target"
    )
    parser.add_argument("--lane", action="append", default=[], choices=["build"], help="build")
    parser.add_argument("--site", default=os.environ.get("PTXBOARD_SITE_URL"), help="its address")
    parser.add_argument("--name", default=f"{platform.node()}-{secrets.token_hex(2)}")
    parser.add_argument("--folder", type=Path, default=None, help="state kept between starts")
    parser.add_argument("--poll", action="store_true", help="ask the site instead of a broker")
    parser.add_argument("--concurrency", type=int, default=1, help="attempts at once (build only)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker process of one lane: either it builds or it runs on its targets."""

    hello: WorkerHello
    runner: AttemptRunner
    stopping: threading.Event
    leftovers: list[Outbox]

    def evaluate(self, attempt: str | None) -> bool:
        """Claim the named attempt, or the oldest one, and carry it out; False if there was none."""
        try:
            order = self.runner.client.claim(self.hello, attempt)
        except (SiteAway, SiteRefused) as error:
            log.warning("claim: %s", error)
            return False
        if order is None:
            return False
        log.info("claimed attempt %s (%s, number %d)", order.attempt, order.lane, order.number)
        outcome = self.runner.run(order)
        log.info("attempt %s: %s", order.attempt, outcome or "not wanted any more")
        return True

    def poll(self) -> None:
        while not self.stopping.is_set():
            if not self.evaluate(None):
                self.stopping.wait(POLL_SECONDS)

    def announce(self) -> None:
        """Tell the site that this worker lives, and what is left to tell, until it stops."""
        while True:
            try:
                self.runner.client.hello(self.hello)
                self.deliver_leftovers()
            except (SiteAway, SiteRefused) as error:
                log.warning("hello: %s", error)
            if self.stopping.wait(HEARTBEAT_SECONDS):
                return

    def deliver_leftovers(self) -> None:
        """Raises SiteAway; what is left then waits for the next time."""
        while self.leftovers:
            told = deliver_leftover(
                self.leftovers[0], self.runner.client, self.runner.environment()
            )
            log.info("leftover %s", told)
            del self.leftovers[0]


def main(options: Namespace) -> int:
    """Run until told to stop; exit 0, or 3 with the reason when this machine cannot serve."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells of every request
    try:
        with _worker(options) as worker:
            _serve(worker, options)
    except EvaluatorFault as fault:
        log.error("%s", fault)
        return EXIT_FAULT
    return 0


def _var() -> Path:
    """Two sites on one machine have two of these, so their workers do not meet."""
    return Path(os.environ.get("PTXBOARD_VAR", "var"))


@contextmanager
def _worker(options: Namespace) -> Iterator[Worker]:
    lanes, targets = _duties(options, examine_machine())
    folder = options.folder or _var() / "workers" / options.name
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench.of_this_machine(cache=folder.parent / "build-cache")
    environment = describe_environment(bench.toolchain, bench.sandbox)
    hello = WorkerHello(
        name=options.name,
        lanes=lanes,
        targets=targets,
        state=WorkerState.IDLE,
        environment=environment,
    )
    stopping = threading.Event()
    with (
        _alone_in(folder),
        SiteClient(site_url=_site(options), token=_token()) as client,
        ExitStack() as stack,
    ):
        runner = AttemptRunner(
            client=client,
            root=folder,
            run_lane=_lane_runner(lanes, bench, folder, stack),
            environment=lambda: environment,
            stopping=stopping,
        )
        yield Worker(
            hello=hello,
            runner=runner,
            stopping=stopping,
            leftovers=find_leftovers(folder / "outbox"),
        )


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two processes in one folder would take each other's results for their own leftovers."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EvaluatorFault(
                f"another worker runs in {folder}; give this one another --name or --folder"
            ) from None
        shutil.rmtree(folder / "attempts", ignore_errors=True)  # of a process that was killed
        yield


def _serve(worker: Worker, options: Namespace) -> None:
    threading.Thread(target=worker.announce, daemon=True).start()
    if options.poll:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stopping.set())
        worker.poll()
        return
    app = worker_app(
        broker_url=os.environ.get("PTXBOARD_BROKER_URL", "filesystem://"),
        broker_folder=_var() / "broker",
        queues=_queues(worker.hello),
        evaluate=worker.evaluate,
        stopping=worker.stopping,
    )
    celery = app.Worker(
        pool="threads",
        concurrency=options.concurrency,
        hostname=f"{worker.hello.name}@{platform.node()}",
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
    )
    logging.getLogger("evaluator").setLevel(logging.INFO)  # Celery has quietened the root logger
    celery.start()


def _duties(
    options: Namespace, abilities: tuple[Ability, ...]
) -> tuple[tuple[Lane, ...], tuple[str, ...]]:
    """Raises EvaluatorFault for what was not said, and for what this machine cannot do."""
    if options.lane and options.target:
        raise EvaluatorFault(
            "one worker process either builds (--lane build) or runs on targets (--target ...); "
            "start two workers to do both"
        )
    if options.lane:
        return (Lane.BUILD,), _buildable(abilities)
    if options.target:
        on_gpu = any(find_target(slug).is_gpu for slug in options.target)
        _refuse(hindrances(abilities, Lane.GPU, on_gpu=on_gpu))
        return (Lane.GPU,), tuple(options.target)
    raise EvaluatorFault("say what to serve: --lane build, or --target with one of " + _known())


def _buildable(abilities: tuple[Ability, ...]) -> tuple[str, ...]:
    """Every target where nvcc and its tools are here, else those of the CPU, with a warning."""
    _refuse(hindrances(abilities, Lane.BUILD, on_gpu=False))
    lacking = hindrances(abilities, Lane.BUILD, on_gpu=True)
    for told in lacking:
        log.warning("no builds for GPUs here: %s", told)
    return tuple(slug for slug, target in TARGETS.items() if not (lacking and target.is_gpu))


def _refuse(lacking: tuple[str, ...]) -> None:
    if lacking:
        raise EvaluatorFault(
            "this machine cannot do that (ptxboard doctor tells more): " + "; ".join(lacking)
        )


def _known() -> str:
    return ", ".join(TARGETS)


def _queues(hello: WorkerHello) -> tuple[str, ...]:
    if Lane.BUILD in hello.lanes:
        return ("build",)
    return tuple(find_target(slug).queue for slug in hello.targets)


def _lane_runner(
    lanes: tuple[Lane, ...], bench: Bench, folder: Path, stack: ExitStack
) -> LaneRunner:
    """The judge process that it may need ends with `stack`."""
    if Lane.BUILD in lanes:
        return lambda work: run_lane(work, bench, Lane.BUILD)
    judge = JudgeClient(folder=folder)
    stack.callback(judge.close)
    return judge.evaluate


def _site(options: Namespace) -> str:
    if not options.site:
        raise EvaluatorFault("the site's address is missing: give --site or PTXBOARD_SITE_URL")
    return str(options.site)


def _token() -> str:
    token = os.environ.get("PTXBOARD_WORKER_TOKEN", "")
    if not token:
        raise EvaluatorFault(
            "PTXBOARD_WORKER_TOKEN is not set; make one on the site with "
            "'python manage.py create_token --worker NAME' with --lane build or --target NAME"
        )
    return token
