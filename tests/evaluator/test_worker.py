"""The worker against a site at the other end of the wire: order, loss, refusal, cancellation."""

import fcntl
import hashlib
import json
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evaluation import Environment, JobOrder, StageResult
from evaluator.records.evidence import Artifact, PolicyEvidence
from evaluator.records.verdicts import EvaluatorFault, Lane, Stage, Verdict
from evaluator.records.worker_api import Outcome, WorkerHello
from evaluator.targets import TARGETS
from evaluator.work import Work
from evaluator.worker import attempt
from evaluator.worker.attempt import AttemptRunner
from evaluator.worker.client import SiteAway, SiteClient, SiteRefused
from evaluator.worker.main import add_arguments, main
from evaluator.worker.outbox import Outbox, deliver_leftover, find_leftovers

ENVIRONMENT = Environment(
    harness_version="1", operating_system="Linux", python="3.11", sandbox="bubblewrap"
)
HELLO = WorkerHello(name="w1", lanes=(Lane.BUILD,), targets=("host",))


class Wire:
    """Answers like the site and remembers every call; `answers` overrides by path ending."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bytes]] = []
        self.answers: dict[str, list[httpx2.Response]] = {}
        self.away = False

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if self.away:
            raise httpx2.ConnectError("connection refused", request=request)
        path = request.url.path.removeprefix("/api/v1/worker/")
        self.calls.append((request.method, path, request.content))
        for ending, answers in self.answers.items():
            if path.endswith(ending) and answers:
                return answers.pop(0)
        if path.endswith("heartbeat"):
            return httpx2.Response(200, json={"cancel": False, "lease_seconds": 60})
        return httpx2.Response(200, json={})

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.calls if not path.endswith("heartbeat")]

    def completion(self) -> dict[str, object]:
        return json.loads(next(body for _, path, body in self.calls if path.endswith("complete")))


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def client(wire: Wire) -> Iterator[SiteClient]:
    transport = httpx2.MockTransport(wire)
    with SiteClient(site_url="http://site.test", token="t", transport=transport) as client:
        yield client


def left(root: Path, client: SiteClient) -> list[str]:
    return [deliver_leftover(one, client, ENVIRONMENT) for one in find_leftovers(root)]


def order() -> JobOrder:
    candidate = Candidate(
        problem="gemm_n256_k256",
        target="host",
        language="cpp",
        sources=(Source(path="kernel.cpp", content="// nothing\n"),),
        entry_file="kernel.cpp",
    )
    return JobOrder(
        attempt="a1",
        job="j1",
        fence="f1",
        lane=Lane.BUILD,
        number=1,
        lease_seconds=60,
        candidate=candidate,
        problem=find_problem("gemm_n256_k256"),
    )


def result(stage: Stage, work: Work | None = None) -> StageResult[PolicyEvidence]:
    artifacts = (work.store("log", b"a log"),) if work else ()
    return StageResult[PolicyEvidence](
        stage=stage, verdict=Verdict.PASSED, message="fine", artifacts=artifacts
    )


def runner(client: SiteClient, root: Path, lane, *, beat: float = 60) -> AttemptRunner:
    return AttemptRunner(
        client=client,
        root=root,
        run_lane=lane,
        environment=lambda: ENVIRONMENT,
        stopping=threading.Event(),
        heartbeat_seconds=beat,
    )


def two_stages(work: Work):
    yield result(Stage.POLICY, work)
    yield result(Stage.COMPILATION)


def test_it_sends_artifacts_before_their_stage_and_completes_last(wire, client, tmp_path):
    assert runner(client, tmp_path, two_stages).run(order()) is Outcome.FINISHED
    sha256 = hashlib.sha256(b"a log").hexdigest()
    assert wire.paths() == [
        f"artifacts/{sha256}",
        "attempts/a1/stages",
        "attempts/a1/stages",
        "attempts/a1/complete",
    ]
    assert wire.completion()["outcome"] == "finished"
    assert not list((tmp_path / "outbox").iterdir())
    assert not list((tmp_path / "attempts").iterdir())


def test_it_keeps_results_on_disk_while_the_site_is_away(wire, client, tmp_path):
    def lane(work: Work):
        yield result(Stage.POLICY)
        wire.away = True
        yield result(Stage.COMPILATION)
        waiting = sorted(file.name for file in (tmp_path / "outbox" / "a1").iterdir())
        assert waiting == ["000000.sent", "000001.message", "owner.json"]
        wire.away = False

    assert runner(client, tmp_path, lane).run(order()) is Outcome.FINISHED
    assert wire.paths() == ["attempts/a1/stages", "attempts/a1/stages", "attempts/a1/complete"]


def test_it_delivers_after_a_restart_what_an_earlier_process_left(wire, client, tmp_path):
    outbox = Outbox.create(tmp_path, attempt="a9", fence="f9")
    outbox.put("attempts/a9/stages", "{}")
    outbox.put("attempts/a9/complete", "{}")
    assert left(tmp_path, client) == ["a9: delivered"]
    assert wire.paths() == ["attempts/a9/stages", "attempts/a9/complete"]
    assert not list(tmp_path.iterdir())


def test_it_reports_at_once_what_was_cut_off_by_a_kill(wire, client, tmp_path):
    outbox = Outbox.create(tmp_path, attempt="a9", fence="f9")
    outbox.put("attempts/a9/stages", "{}")
    outbox.deliver(client)
    assert left(tmp_path, client) == ["a9: reported as cut off"]
    assert wire.paths() == ["attempts/a9/stages", "attempts/a9/complete"]
    told = wire.completion()
    assert (told["fence"], told["outcome"]) == ("f9", "faulted")
    assert (
        told["message"] == "the worker was killed in the midst of this attempt and has started anew"
    )
    assert not list(tmp_path.iterdir())


def test_a_leftover_survives_a_site_that_is_away(wire, client, tmp_path):
    Outbox.create(tmp_path, attempt="a9", fence="f9")
    wire.away = True
    with pytest.raises(SiteAway):
        left(tmp_path, client)
    wire.away = False
    assert left(tmp_path, client) == ["a9: delivered"]
    assert wire.completion()["outcome"] == "faulted"


def test_two_workers_in_one_folder_are_refused(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PTXBOARD_WORKER_TOKEN", "t")
    parser = ArgumentParser()
    add_arguments(parser)
    arguments = ["--lane", "build", "--site", "http://site.test", "--folder", str(tmp_path)]
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(parser.parse_args(arguments)) == 3
    assert f"another worker runs in {tmp_path}; give this one another --name" in caplog.text


def test_it_drops_leftovers_that_the_site_no_longer_wants(wire, client, tmp_path):
    Outbox.create(tmp_path, attempt="a9", fence="old").put("attempts/a9/complete", "{}")
    wire.answers["complete"] = [httpx2.Response(409, text="stale fence")]
    (told,) = left(tmp_path, client)
    assert "not wanted any more" in told
    assert "409 stale fence" in told


def test_it_stops_without_completing_when_its_fence_is_stale(wire, client, tmp_path):
    ran = []

    def lane(work: Work):
        for stage in (Stage.POLICY, Stage.COMPILATION, Stage.SASS):
            ran.append(stage)
            yield result(stage)

    wire.answers["stages"] = [httpx2.Response(409, text="stale")]
    assert runner(client, tmp_path, lane).run(order()) is None
    assert ran == [Stage.POLICY]
    assert wire.paths() == ["attempts/a1/stages"]


def test_it_takes_the_blame_when_a_stage_raises_a_fault(wire, client, tmp_path):
    def lane(work: Work):
        raise EvaluatorFault("cuobjdump is missing; install it")
        yield

    assert runner(client, tmp_path, lane).run(order()) is Outcome.FAULTED
    assert wire.completion()["message"] == "cuobjdump is missing; install it"


def test_it_takes_the_blame_for_a_bug_of_its_own(wire, client, tmp_path):
    def lane(work: Work):
        yield result(Stage.POLICY)
        raise ZeroDivisionError

    assert runner(client, tmp_path, lane).run(order()) is Outcome.FAULTED
    assert "ZeroDivisionError" in str(wire.completion()["message"])


def test_it_takes_the_blame_when_the_site_refuses_a_stage(wire, client, tmp_path):
    wire.answers["stages"] = [httpx2.Response(400, text="unknown stage")]
    assert runner(client, tmp_path, two_stages).run(order()) is Outcome.FAULTED
    assert "400 unknown stage" in str(wire.completion()["message"])
    assert wire.paths()[-2:] == ["attempts/a1/stages", "attempts/a1/complete"]


def test_it_hands_the_attempt_back_when_the_author_cancels(wire, client, tmp_path):
    def lane(work: Work):
        yield result(Stage.POLICY)
        for _ in range(200):
            if work.cancelled():
                raise EvaluatorFault("stopped in the middle")
            threading.Event().wait(0.02)
        yield result(Stage.COMPILATION)

    wire.answers["heartbeat"] = [httpx2.Response(200, json={"cancel": True, "lease_seconds": 60})]
    assert runner(client, tmp_path, lane, beat=0.05).run(order()) is Outcome.RELEASED
    assert wire.completion()["message"] == "cancelled"


def test_it_hands_the_attempt_back_when_the_worker_shuts_down(wire, client, tmp_path):
    def lane(work: Work):
        yield result(Stage.POLICY)
        stopper.stopping.set()
        yield result(Stage.COMPILATION)

    stopper = runner(client, tmp_path, lane)
    assert stopper.run(order()) is Outcome.RELEASED
    assert wire.completion()["message"] == "the worker is shutting down"


BUILT = Artifact(role="library", sha256=hashlib.sha256(b"lib").hexdigest(), byte_count=3)


def test_it_fetches_what_was_built_again_while_the_site_is_away(
    wire, client, tmp_path, monkeypatch
):
    monkeypatch.setattr(attempt, "RETRY_SECONDS", (0.01,))
    away = [httpx2.Response(503), httpx2.Response(429), httpx2.Response(200, content=b"lib")]
    wire.answers[BUILT.sha256] = away
    seen = []

    def lane(work: Work):
        seen.append(work.path(BUILT).read_bytes())
        yield result(Stage.CORRECTNESS)

    given = order().model_copy(update={"build_artifacts": (BUILT,)})
    assert runner(client, tmp_path, lane).run(given) is Outcome.FINISHED
    assert seen == [b"lib"]


def test_it_gives_up_fetching_in_time_and_at_once_where_the_site_refuses(
    wire, client, tmp_path, monkeypatch
):
    monkeypatch.setattr(attempt, "RETRY_SECONDS", (0.01,))
    monkeypatch.setattr(attempt, "FETCH_SECONDS", 0.05)
    given = order().model_copy(update={"build_artifacts": (BUILT,)})
    wire.answers[BUILT.sha256] = [httpx2.Response(503, text="away")] * 50
    assert runner(client, tmp_path, two_stages).run(given) is Outcome.FAULTED
    assert str(wire.completion()["message"]).startswith("library could not be fetched: GET ")
    wire.answers[BUILT.sha256] = [httpx2.Response(404)]
    asked = len(wire.calls)
    assert runner(client, tmp_path, two_stages).run(given) is Outcome.FAULTED
    assert len([path for path in wire.paths()[asked:] if BUILT.sha256 in path]) <= 1


def test_it_claims_nothing_when_another_worker_was_faster(wire, client):
    wire.answers["claim"] = [httpx2.Response(409, text="taken"), httpx2.Response(204)]
    assert client.claim(HELLO, "a1") is None
    assert client.claim(HELLO) is None


def test_it_says_which_call_a_wrong_token_failed_on(wire, client):
    wire.answers["hello"] = [httpx2.Response(401, text="unknown token")]
    with pytest.raises(SiteRefused, match=r"POST /api/v1/worker/hello: 401 unknown token"):
        client.hello(HELLO)


def test_it_refuses_an_artifact_whose_bytes_changed(tmp_path):
    work = Work(
        candidate=order().candidate,
        problem=order().problem,
        target=TARGETS["host"],
        folder=tmp_path,
    )
    artifact = work.store("library", b"one")
    (tmp_path / artifact.sha256).write_bytes(b"two")
    with pytest.raises(EvaluatorFault, match="library: expected SHA-256 7692c3ad"):
        work.path(artifact)
