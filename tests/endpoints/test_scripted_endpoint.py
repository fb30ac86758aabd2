"""The example endpoint: which file answers which call, and the errors that a script holds."""

import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from evaluator.agent.messages import Message
from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.parameters import Api, Parameters
from tests.endpoints.conftest import LIMITS

ROOT = Path(__file__).parents[2]
FILES = (
    "tma/1/0.md",
    "tma/0.md",
    "default/1/0.md",
    "default/0.md",
    "default/1.md",
    "default/2.md",
    "default/last.md",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def turns(answers: int, prompt: str = "Write one.") -> list[Message]:
    pair = [Message(role="assistant", content="x"), Message(role="user", content="No.")]
    return [Message(role="user", content=prompt), *pair * answers]


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize(
    ("label", "answers", "name"),
    [
        ("run/tma/1", 0, "tma/1/0.md"),
        ("run/tma/2", 0, "tma/0.md"),
        ("run/other/1", 0, "default/1/0.md"),
        ("run/other/2", 0, "default/0.md"),
        ("run/tma/1", 1, "default/1.md"),
        ("run/tma/1", 7, "default/last.md"),
        ("run/tma/1/2", 0, "default/2.md"),
        ("run/../1", 0, "default/1/0.md"),
        ("run/tma/..", 0, "tma/0.md"),
    ],
)
def test_a_label_and_the_turn_choose_the_answer(server, folder, api, label, answers, name):
    endpoint = Endpoint(api=api, base_url=server.url, model="m", key=SecretStr(""))
    asked = Parameters(send_labels=True)
    reply = complete(endpoint, turns(answers), asked, label=label, limits=LIMITS)
    assert reply.text == name


@pytest.mark.parametrize(
    ("model", "prompt", "seed", "name"),
    [
        ("m@tma", "Write one.", None, "tma/0.md"),
        ("m@tma", "Write one.", 1, "tma/1/0.md"),
        ("m", "Write one.\nVariant: tma\nMore.", 1, "tma/1/0.md"),
        ("m", "# Variant: `tma`", 1, "tma/1/0.md"),
        ("m", "Write one.", None, "default/0.md"),
    ],
)
def test_without_a_label_the_model_the_prompt_and_the_seed_do(
    server, folder, model, prompt, seed, name
):
    endpoint = Endpoint(api=Api.CHAT, base_url=server.url, model=model)
    reply = complete(endpoint, turns(0, prompt), Parameters(seed=seed), limits=LIMITS)
    assert reply.text == name


def test_a_scripted_error_comes_as_often_as_it_says_to_each_trajectory(server, folder):
    script = '{"status": 429, "message": "busy", "retry_after": "3", "times": 2}'
    (folder / "default/0.error.json").write_text(script)
    endpoint = Endpoint(api=Api.CHAT, base_url=server.url, model="m")
    asked = Parameters(send_labels=True)
    for label in ("run/other/2", "run/other/3"):
        for _ in range(2):
            with pytest.raises(EndpointError, match="busy") as caught:
                complete(endpoint, turns(0), asked, label=label, limits=LIMITS)
            assert caught.value.kind is ErrorKind.RATE_LIMIT
            assert caught.value.retry_after_seconds == 3
        reply = complete(endpoint, turns(0), asked, label=label, limits=LIMITS)
        assert reply.text == "default/0.md"


def test_a_missing_answer_names_the_files_that_would_do(server):
    endpoint = Endpoint(api=Api.CHAT, base_url=server.url, model="m")
    with pytest.raises(EndpointError, match=r"looked for default/0/0\.md, default/0\.md") as caught:
        complete(endpoint, turns(0), Parameters(), limits=LIMITS)
    assert caught.value.kind is ErrorKind.BAD_REQUEST


def test_it_runs_as_its_own_text_says(folder):
    command = [sys.executable, "examples/scripted_endpoint.py", str(folder), "--port", "0"]
    with subprocess.Popen(
        [*command, "--api", "chat", "--delay", "0.2"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            url = process.stdout.readline().split()[-1]
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            start = time.monotonic()
            answer = httpx2.post(f"{url}/chat/completions", json=body, timeout=10)
            assert time.monotonic() - start >= 0.2
            assert answer.json()["choices"][0]["message"]["content"] == "default/0.md"
            assert httpx2.post(f"{url}/messages", json=body, timeout=10).status_code == 404
            broken = httpx2.post(f"{url}/chat/completions", content=b"[1]", timeout=10)
            assert broken.status_code == 400
        finally:
            process.terminate()


def test_a_folder_that_is_missing_is_named():
    command = [sys.executable, "examples/scripted_endpoint.py", "no-such-folder"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (2, "no-such-folder is not a folder\n")
