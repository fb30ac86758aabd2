"""`ptxboard worker` as a process, against a small site over HTTP: how it stops, what it keeps."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from celery import Celery

from evaluator.broker import BUILD_QUEUE, EVALUATE_TASK, queue, transport_options
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evaluation import JobOrder
from evaluator.records.verdicts import Lane

# Some seconds of compile time: the compiler counts to the limit of its own steps.
SLOW = """
constexpr long count() { long sum = 0; for (long i = 0; i < 9000000; ++i) sum += i; return sum; }
extern "C" void run(const void* A, const void* B, void* C) { static_assert(count() > 0, ""); }
"""


class Site(ThreadingHTTPServer):
    """Gives one attempt, remembers what it was told; `away` answers 503 to results."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.orders = [order()]
        self.told: list[tuple[str, dict]] = []
        self.refused: list[str] = []
        self.away = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def completion(self) -> dict:
        return next((body for path, body in self.told if path.endswith("complete")), {})


class Answer(BaseHTTPRequestHandler):
    server: Site

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.removeprefix("/api/v1/worker/")
        if path == "hello":
            self.reply(200, {})
        elif path == "claim":
            given = self.server.orders.pop() if self.server.orders else None
            self.reply(200 if given else 204, given and json.loads(given.to_json()))
        elif path.endswith("heartbeat"):
            self.reply(200, {"cancel": False, "lease_seconds": 60})
        elif self.server.away:
            self.server.refused.append(path)
            self.reply(503, {})
        else:
            self.server.told.append((path, json.loads(body)))
            self.reply(200, {})

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(201, {})

    def reply(self, status: int, value: object) -> None:
        data = b"" if status == 204 else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


def order() -> JobOrder:
    return JobOrder(
        attempt="a1",
        job="j1",
        fence="f1",
        lane=Lane.BUILD,
        number=1,
        lease_seconds=60,
        candidate=Candidate(
            problem="gemm_n256_k256",
            target="host",
            language="cpp",
            sources=(Source(path="kernel.cpp", content=SLOW),),
            entry_file="kernel.cpp",
        ),
        problem=find_problem("gemm_n256_k256"),
    )


@pytest.fixture
def site():
    made = Site()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def start(site, tmp_path):
    started = []

    def begin(*options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "evaluator", "worker", "--lane", "build", *options]
        command += ["--name", "w1", "--site", site.url, "--folder", str(tmp_path / "w1")]
        log = (tmp_path / "log").open("ab")
        environment = {
            **os.environ,
            "PTXBOARD_WORKER_TOKEN": "t",
            "PTXBOARD_VAR": str(tmp_path / "var"),
        }
        environment.pop("PTXBOARD_BROKER_URL", None)
        with log:
            worker = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        started.append(worker)
        return worker

    yield begin
    for worker in started:
        worker.kill()
        worker.wait()


def until(true, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(true())


def ring(folder: Path) -> None:
    """What the site does: a message on the broker that needs no server."""
    app = Celery("site", broker="filesystem://localhost//")
    app.conf.broker_transport_options = transport_options("filesystem://", folder)
    app.conf.task_queues = [queue(BUILD_QUEUE)]
    app.send_task(EVALUATE_TASK, ["a1"], queue=BUILD_QUEUE)


@pytest.mark.parametrize("options", [("--poll",), ()], ids=["polling", "celery"])
def test_a_worker_that_is_told_to_stop_hands_its_attempt_back(site, start, tmp_path, options):
    worker = start(*options)
    if not options:
        ring(tmp_path / "var" / "broker")
    assert until(lambda: site.told), (tmp_path / "log").read_text()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    assert site.completion()["outcome"] == "released"
    assert site.completion()["message"] == "the worker is shutting down"
    assert list((tmp_path / "w1" / "outbox").iterdir()) == []
    log = (tmp_path / "log").read_text()
    for noise in ("Traceback", "HTTP Request", "superuser", "No hostname"):
        assert noise not in log, log


def test_results_of_a_worker_that_was_killed_go_out_at_its_next_start(site, start, tmp_path):
    site.away = True
    worker = start("--poll")
    assert until(lambda: site.refused), (tmp_path / "log").read_text()
    worker.kill()
    worker.wait()
    kept = sorted(path.name for path in (tmp_path / "w1" / "outbox" / "a1").iterdir())
    assert "owner.json" in kept
    assert "000000.message" in kept
    site.away = False
    start("--poll")
    assert until(lambda: site.told), (tmp_path / "log").read_text()
    path, body = site.told[0]
    assert path == "attempts/a1/stages"
    assert body["result"]["stage"] == "policy"
    assert until(lambda: not list(Path(tmp_path / "w1" / "outbox").iterdir()))


def test_a_worker_that_lacks_what_it_needs_says_so_and_ends(site, tmp_path):
    command = [sys.executable, "-m", "evaluator", "worker", "--target", "h200", "--poll"]
    command += ["--site", site.url, "--folder", str(tmp_path)]
    environment = {**os.environ, "PTXBOARD_WORKER_TOKEN": "t", "PATH": "/usr/bin:/bin"}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 3
    assert "this machine cannot do that (ptxboard doctor tells more): " in done.stderr
    assert "ncu is missing: " in done.stderr
