"""A real model server: `transformers serve` with a tiny random model, whose gibberish is handled.

Needs `transformers[serving]` and torch, in this environment or on PATH; left out where they are
missing. No GPU, no download.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from evaluator.agent.extraction import extract
from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.probing import probe
from tests.endpoints.conftest import KEY, MESSAGES

ROOT = Path(__file__).parents[2]
BESIDE = str(Path(sys.executable).parent)
SERVER = shutil.which("transformers", path=f"{BESIDE}{os.pathsep}{os.environ.get('PATH', '')}")
LIMITS = Limits(total_seconds=120, idle_seconds=60)
TOKENS = 40

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SERVER is None, reason="transformers[serving] is not installed"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Base URL and model name."""
    folder = tmp_path_factory.mktemp("tiny")
    python = Path(SERVER).with_name("python")
    subprocess.run([python, "tests/endpoints/tiny_model.py", folder], cwd=ROOT, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = (folder / "log").open("w")
    command = [SERVER, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    with log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, folder / "log")
            yield f"http://127.0.0.1:{port}/v1", str(folder)
        finally:
            process.terminate()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        try:
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            assert process.poll() is None, log.read_text()
        time.sleep(0.5)
    raise AssertionError(log.read_text())


@pytest.fixture
def endpoint(served: tuple[str, str], settings: pytest.FixtureRequest) -> Endpoint:
    settings.PTXBOARD_ENDPOINT_HOSTS = ["127.0.0.1"]
    url, model = served
    return Endpoint(api=Api.CHAT, base_url=url, model=model, key=SecretStr(KEY))


def of(endpoint: Endpoint, **changes: object) -> Endpoint:
    known = {name: getattr(endpoint, name) for name in ("api", "base_url", "model", "key")}
    return Endpoint(**{**known, **changes})


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", [Api.CHAT, Api.RESPONSES])
def test_gibberish_is_a_reply_without_a_kernel(endpoint, api, stream):
    asked = Parameters(max_tokens=TOKENS, temperature=1.0, stream=stream)
    reply = complete(of(endpoint, api=api), MESSAGES, asked, limits=LIMITS)
    assert reply.text
    assert reply.usage.prompt_tokens > 10
    assert 0 < reply.usage.completion_tokens <= TOKENS
    assert reply.request_id
    found = extract(
        reply.text, finish_reason=reply.finish_reason, reasoning=reply.reasoning, language="cuda"
    )
    assert found.source is None
    assert found.message


def test_the_token_limit_is_told_as_such(endpoint):
    reply = complete(endpoint, MESSAGES, Parameters(max_tokens=2), limits=LIMITS)
    assert (reply.finish_reason, reply.usage.completion_tokens) == ("length", 2)


def test_a_field_that_the_server_does_not_know_is_named(endpoint):
    with pytest.raises(EndpointError, match="top_k") as caught:
        complete(endpoint, MESSAGES, Parameters(top_k=4, max_tokens=4), limits=LIMITS)
    assert (caught.value.kind, caught.value.is_retryable) == (ErrorKind.BAD_REQUEST, False)


def test_another_model_is_unknown(endpoint):
    with pytest.raises(EndpointError) as caught:
        complete(of(endpoint, model="no/such"), MESSAGES, Parameters(), limits=LIMITS)
    assert caught.value.kind is ErrorKind.UNKNOWN_MODEL


def test_an_api_that_the_server_lacks_points_to_the_base_url(endpoint):
    with pytest.raises(EndpointError, match="check the model's name and the base URL") as caught:
        complete(of(endpoint, api=Api.MESSAGES), MESSAGES, Parameters(), limits=LIMITS)
    assert caught.value.kind is ErrorKind.UNKNOWN_MODEL


def test_the_probe_answers(endpoint):
    result = probe(endpoint, Parameters())
    assert result.ok, result.message
    assert result.model == endpoint.model
