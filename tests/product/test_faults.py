"""What is killed or cancelled at a bad moment: each submission still ends with one verdict."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests.product.conftest import ROOT, free_port, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.serial]

HOST_KERNEL = (ROOT / "examples/kernels/gemm_host.cpp").read_text()
SLOW_TO_COMPILE = """
constexpr unsigned long spin(unsigned long n) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < n; ++i) sum += i * i;
  return sum;
}
template <int I> struct Slow {
  static constexpr auto value = spin(200000 + I) + Slow<I - 1>::value;
};
template <> struct Slow<0> { static constexpr auto value = 1ul; };
unsigned long slow = Slow<5>::value;
"""
ENTRY = 'extern "C" void run(const uint16_t* a, const uint16_t* b, uint16_t* c) {'
SLOW_TO_RUN = HOST_KERNEL.replace(ENTRY, f"#include <unistd.h>\n{ENTRY}\n  usleep(40000);")
SET_UP = """
from django.core.management import call_command as call
call("migrate", verbosity=0)
call("sync_catalogue", verbosity=0)
call("demo_user", verbosity=0, stdout=open("/dev/null", "w"))
call("create_token", worker="b", lane="build", label="", days=None)
call("create_token", worker="h", target=["host"], label="", days=None)
"""


@dataclass(kw_only=True)
class Parts:
    """The product's processes one by one, as an operator starts them."""

    var: Path
    port: int = field(default_factory=free_port)
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        site = f"http://127.0.0.1:{self.port}"
        return {**os.environ, "PTXBOARD_VAR": str(self.var), "PTXBOARD_SITE_URL": site}

    def set_up(self) -> None:
        made = subprocess.run(
            [sys.executable, "manage.py", "shell", "-v0", "-c", SET_UP],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        self.tokens = dict(zip(("build", "host"), made.stdout.split()[-2:], strict=True))
        python = sys.executable
        bind, worker = f"127.0.0.1:{self.port}", [python, "-m", "evaluator", "worker"]
        self.commands = {
            "site": [python, "-m", "gunicorn", "webapp.wsgi", "--bind", bind, "--threads", "4"],
            "io": [
                *(python, "-m", "celery", "-A", "webapp", "worker", "-B", "-Q", "io"),
                *("--pool", "solo", "--without-gossip", "--without-mingle"),
            ],
            "build": [*worker, "--lane", "build", "--name", "b", "--folder", str(self.var / "b")],
            "host": [*worker, "--target", "host", "--name", "h", "--folder", str(self.var / "h")],
        }

    def start(self, *names: str) -> None:
        for name in names:
            token = {"PTXBOARD_WORKER_TOKEN": self.tokens.get(name, "")}
            with (self.var / f"{name}.log").open("ab") as log:
                self.running[name] = subprocess.Popen(
                    self.commands[name],
                    cwd=ROOT,
                    env={**self.environment, **token},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def kill(self, *names: str) -> None:
        """SIGKILL for each and its own children, as an out-of-memory killer or a power cut does."""
        for name in names:
            os.killpg(self.running[name].pid, signal.SIGKILL)
            self.running[name].wait()

    def stop(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def call(self, method: str, path: str, body: object = None) -> dict:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        token = (self.var / "demo_token").read_text().strip()
        request.add_header("Authorization", f"Token {token}")
        request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=60) as answer:
            return json.load(answer)

    def answers(self) -> bool:
        try:
            return self.call("GET", "/readyz")["status"] == "ready"
        except OSError:
            return False

    def submit(self, source: str, name: str) -> str:
        body = {"problem": "gemm_n256_k256", "target": "host", "name": name}
        return self.call("POST", "/api/v1/submissions/", {**body, "source": source})["id"]

    def reach(self, identifier: str, *stages: str) -> None:
        """Wait until one of the stages runs; then a second, so that it is in its midst."""

        def runs() -> bool:
            told = self.call("GET", f"/api/v1/submissions/{identifier}/")["stages"]
            return any(one["state"] == "running" and one["stage"] in stages for one in told)

        wait_for(runs, 90, f"{' or '.join(stages)} of {identifier}")
        time.sleep(1)

    def ended(self, identifier: str) -> dict:
        """The submission once it has ended."""
        seen: dict = {}

        def over() -> bool:
            try:
                seen.update(self.call("GET", f"/api/v1/submissions/{identifier}/"))
            except OSError:
                return False
            return seen["state"] not in ("QUEUED", "RUNNING")

        wait_for(over, 150, f"the end of {identifier}")
        return seen

    def rows(self, query: str) -> list[tuple]:
        connection = sqlite3.connect(self.var / "ptxboard.sqlite3", timeout=20)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    parts = Parts(var=tmp_path / "var")
    parts.var.mkdir()
    parts.set_up()
    parts.start("site", "io", "build", "host")
    try:
        wait_for(parts.answers, 60, "the site")
        yield parts
    finally:
        parts.stop()


def judge_of(worker: int) -> int:
    """The judge process that the worker has started; it is a session of its own."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name_and_more = path.read_text().rpartition(")")[2].split()
            command = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(name_and_more[1]) == worker and b"evaluator.judge.server" in command:
            return int(path.parent.name)
    raise AssertionError(f"worker {worker} has no judge")


def test_whatever_is_killed_each_submission_ends_once_with_a_verdict(parts):
    run = parts.submit(SLOW_TO_RUN, "host worker killed")
    parts.reach(run, "correctness", "timing")
    parts.kill("host")
    build = parts.submit(HOST_KERNEL + SLOW_TO_COMPILE, "build worker killed")
    parts.reach(build, "policy", "compilation")
    parts.kill("build")
    waiting = parts.submit(HOST_KERNEL + "// waits\n", "site and duties killed")
    parts.kill("site", "io")
    parts.start("site", "io", "build", "host")
    ended = [parts.ended(identifier) for identifier in (waiting, build, run)]
    judged = parts.submit(SLOW_TO_RUN + "// judge\n", "judge killed")
    parts.reach(judged, "correctness", "timing")
    os.kill(judge_of(parts.running["host"].pid), signal.SIGKILL)
    ended.append(parts.ended(judged))
    assert [(one["name"], one["state"]) for one in ended if one["verdict"] is None] == []
    assert {one["state"] for one in ended} == {"DONE"}
    counts = parts.rows("SELECT submission_id, COUNT(*) FROM leaderboard_evaluation GROUP BY 1")
    assert [count for _, count in counts] == [1] * 4
    left = "SELECT state FROM leaderboard_attempt WHERE state IN ('QUEUED', 'RUNNING')"
    assert parts.rows(left) == []
    assert len(parts.rows("SELECT id FROM leaderboard_attempt WHERE state = 'FAULTED'")) == 3
    logs = "".join((parts.var / f"{name}.log").read_text() for name in parts.commands)
    secrets = [*parts.tokens.values(), (parts.var / "demo_token").read_text().strip()]
    assert [secret for secret in secrets if secret in logs] == []


def test_a_cancel_while_the_build_ends_leaves_nothing_that_runs(tmp_path, postgresql_url):
    """PostgreSQL: a statement does not see rows that were committed after it began."""
    environment = {
        **os.environ,
        "PTXBOARD_VAR": str(tmp_path),
        "PTXBOARD_DATABASE_URL": postgresql_url.replace("/postgres", "/race"),
        "PTXBOARD_SECRET_KEY": "only-for-this-test-" * 4,
        "PTXBOARD_ALLOWED_HOSTS": "testserver",
    }
    _create_database(postgresql_url, "race")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.product.cancel_race"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "cancel": 200,
        "submission": "CANCELLED",
        "jobs": ["CANCELLED"],
        "attempts": ["FINISHED", "CANCELLED"],
    }


def _create_database(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
