"""A model endpoint goes in, audited trajectories come out: real site, broker, workers, compiler."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from examples.scripted_endpoint import ScriptedHandler, ScriptedServer
from leaderboard.models.stage_record import chained_digest
from tests.product.conftest import ROOT, Product, running, wait_for
from tests.product.test_faults import Parts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.serial]

FAST = (ROOT / "examples/kernels/gemm_host.cpp").read_text()
WRONG = (ROOT / "tests/candidates/host_wrong/kernel.cpp").read_text()
KEY = "sk-canary-of-the-walk-0042"
TRAJECTORIES = 4


def answer(source: str, trajectory: int) -> str:
    """Each trajectory has kernels of its own, as a model's would be."""
    return f"Trajectory {trajectory}.\n\n```cpp\n// trajectory {trajectory}\n{source}\n```\n"


def script(folder: Path) -> None:
    """From what does not compile over what is wrong to what is right; one answer is no kernel."""
    for trajectory in range(1, TRAJECTORIES + 1):
        place = folder / "no-schedule" / str(trajectory)
        place.mkdir(parents=True)
        (place / "0.md").write_text(answer(FAST + "\nint broken = ;\n", trajectory))
        (place / "1.md").write_text(answer(WRONG, trajectory))
        (place / "2.md").write_text(answer(FAST, trajectory))
    (folder / "default").mkdir()
    (folder / "default" / "0.md").write_text("Here I am.")  # to the test of the connection
    (folder / "no-schedule" / "4" / "1.md").write_text("I need more time.")
    busy = {"status": 429, "message": "busy", "retry_after": "1", "times": 1}
    (folder / "no-schedule" / "2" / "1.error.json").write_text(json.dumps(busy))


class Heard(ScriptedHandler):
    """Notes a call as soon as it comes in."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:  # noqa: N802
        self.asked.append(self.path)
        super().do_POST()


@contextmanager
def answering(folder: Path, **more: Any) -> Iterator[ScriptedServer]:
    """The model's server, which must serve before it can be shut down."""
    with ScriptedServer(folder, **more) as server:
        server.start()
        yield server


def request(product: Product, path: str, body: dict | None = None) -> dict:
    asked = urllib.request.Request(
        path if path.startswith("http") else product.url + path,
        data=json.dumps(body).encode() if body is not None else None,
        headers={
            "Authorization": f"Token {product.token}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(asked, timeout=60) as reply:
        return json.loads(reply.read())


def start(product: Product, url: str) -> dict:
    body = {
        "api": "openai-chat",
        "base_url": url,
        "model": "scripted",
        "key": KEY,
        "problems": ["gemm_n256_k256"],
        "target": "host",
        "trajectories": TRAJECTORIES,
        "turns": 3,
        "target_speedup": 1000,
        "parameters": {"send_labels": True},
        "prices": {"prompt_usd": 1, "completion_usd": 4},
    }
    tested = request(product, "/api/v1/model-runs/test-connection/", endpoint_of(body))
    assert tested["ok"], tested
    return request(product, "/api/v1/model-runs/", body)["runs"][0]


def endpoint_of(body: dict) -> dict:
    return {name: body[name] for name in ("api", "base_url", "model", "key")}


def states(run: dict) -> list[list[str]]:
    return [[turn["state"] for turn in row["turns"]] for row in run["trajectories"]]


def check_chain(product: Product, trajectory: dict) -> None:
    path = f"/api/v1/trajectories/{trajectory['id']}/export/?format=ptxboard"
    exported = request(product, path)
    previous = exported["run"]["digest"]
    assert len(exported["turns"]) == 3
    for turn in exported["turns"]:
        assert chained_digest(previous, turn["call"]) == turn["call_digest"]
        assert chained_digest(turn["call_digest"], turn["outcome"]) == turn["digest"]
        previous = turn["digest"]


def test_four_trajectories_go_from_broken_to_right_and_leave_an_audited_record(tmp_path):
    script(tmp_path / "answers")
    with (
        answering(tmp_path / "answers") as endpoint,
        running(tmp_path / "var", {"PTXBOARD_ENDPOINT_HOSTS": "127.0.0.1"}) as product,
    ):
        made = start(product, endpoint.url)
        ended = ("DONE", "FAULTED", "CANCELLED", "PAUSED")
        wait_for(lambda: request(product, made["url"])["state"] in ended, 400, "the end of the run")
        run = request(product, made["url"])
        assert (run["state"], run["reason"]) == ("DONE", "")
        assert run["endpoint"]["key"] == "deleted"
        seen = states(run)
        right = ("PASSED", "INCONCLUSIVE")  # a busy machine may not time well enough
        assert [row[:2] for row in seen] == [
            ["COMPILE_ERROR", "INCORRECT_NUMERICAL"],
            ["COMPILE_ERROR", "INCORRECT_NUMERICAL"],
            ["COMPILE_ERROR", "INCORRECT_NUMERICAL"],
            ["COMPILE_ERROR", "NO_CODE"],
        ]
        assert all(row[2] in right for row in seen)
        assert run["metrics"]["planned_turns"] == run["metrics"]["taken_turns"] == 12
        assert run["metrics"]["any"]["correctness_rate"]["eighth"] == pytest.approx(4 / 12)
        assert run["used"]["cost_usd"] > 0
        for trajectory in run["trajectories"]:
            check_chain(product, trajectory)
        told = request(product, run["trajectories"][0]["url"])["turns"]
        assert "error:" in told[0]["feedback"]
        assert "INCORRECT_NUMERICAL" in told[1]["feedback"]
        logs = [path.read_text() for path in (tmp_path / "var" / "log").iterdir()]
        assert all(KEY not in text for text in logs)
    stored = (tmp_path / "var" / "ptxboard.sqlite3").read_bytes()
    assert KEY.encode() not in stored


def test_a_killed_models_worker_repeats_the_call_under_way_and_no_stored_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXBOARD_ENDPOINT_HOSTS", "127.0.0.1")
    script(tmp_path / "answers")
    parts = Parts(var=tmp_path / "var")
    parts.var.mkdir()
    parts.set_up()
    celery = (sys.executable, "-m", "celery", "-A", "webapp", "worker", "-Q", "models")
    parts.commands["models"] = [*celery, "--pool", "threads", "-c", "4", "--without-mingle"]
    asked = Heard.asked = []
    with answering(tmp_path / "answers", delay_seconds=4, handler=Heard) as endpoint:
        parts.start("site", "io", "build", "host", "models")
        try:
            wait_for(parts.answers, 60, "the site")
            body = {
                **{"api": "openai-chat", "base_url": endpoint.url, "model": "scripted"},
                **{"problems": ["gemm_n256_k256"], "target": "host"},
                **{"trajectories": 1, "turns": 2, "parameters": {"send_labels": True}},
            }
            path = parts.call("POST", "/api/v1/model-runs/", body)["runs"][0]["url"]
            path = path.partition(f":{parts.port}")[2]

            def told() -> dict:
                return parts.call("GET", path)

            wait_for(lambda: asked, 90, "a call")
            parts.kill("models")
            assert told()["trajectories"][0]["turns"] == []
            parts.start("models")
            wait_for(lambda: told()["trajectories"][0]["turns"], 200, "the call made again")
            parts.kill("models")
            parts.start("models")
            wait_for(lambda: told()["state"] == "DONE", 200, "the end of the run")
            (row,) = told()["trajectories"]
        finally:
            parts.stop()
    assert [turn["state"] for turn in row["turns"]] == ["COMPILE_ERROR", "INCORRECT_NUMERICAL"]
    lost = len(asked) - 2  # the second kill may have come in the midst of the second turn's call
    assert 1 <= lost <= 2, asked
