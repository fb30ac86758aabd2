"""Test of a connection: one tiny request, and words for people."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import SecretStr

from leaderboard.endpoints import probing
from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import ErrorKind
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.probing import probe


def endpoint(url: str, api: Api = Api.CHAT) -> Endpoint:
    return Endpoint(api=api, base_url=url, model="asked", key=SecretStr("sk-test-123456"))


def test_an_endpoint_that_answers_is_quoted(server):
    result = probe(endpoint(server.at("plain")), Parameters(max_tokens=9000, temperature=0.5))
    assert (result.ok, result.kind, result.model) == (True, None, "served")
    assert result.message.startswith("served answered 'fine' after 0.")
    body = server.seen[0][1]
    assert (body["max_tokens"], body["temperature"]) == (16, 0.5)


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("reasoning_only", "answered with reasoning only"),
        ("null_everywhere", "the model answered without text (no reason given)"),
    ],
)
def test_an_answer_without_text_is_still_an_answer(server, quirk, words):
    result = probe(endpoint(server.at(quirk)), Parameters())
    assert result.ok
    assert words in result.message


def test_a_thinking_budget_gets_room(server):
    parameters = Parameters.model_validate(
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 30_000}
    )
    assert probe(endpoint(server.at("messages_thinking"), Api.MESSAGES), parameters).ok
    assert server.seen[0][1]["max_tokens"] == 1040


@pytest.mark.parametrize(
    ("quirk", "kind", "words"),
    [
        ("status-401", ErrorKind.AUTH, "give a key that this endpoint and model accept"),
        ("status-404", ErrorKind.UNKNOWN_MODEL, "check the model's name and the base URL"),
        ("limited-seconds", ErrorKind.RATE_LIMIT, "may be made later"),
        ("web_page", ErrorKind.BAD_REPLY, "check the base URL"),
    ],
)
def test_a_failure_says_what_to_do(server, quirk, kind, words):
    result = probe(endpoint(server.at(quirk)), Parameters())
    assert (result.ok, result.kind) == (False, kind)
    assert words in result.message


def test_a_private_address_says_whom_to_ask(settings):
    settings.PTXBOARD_ENDPOINT_HOSTS = []
    result = probe(endpoint("https://169.254.169.254/v1"), Parameters())
    assert (result.ok, result.kind) == (False, ErrorKind.REFUSED_ADDRESS)
    assert "ask the operator" in result.message


def test_a_closed_port_of_an_allowed_host_is_unreachable(server):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    result = probe(endpoint(f"http://127.0.0.1:{port}/v1"), Parameters())
    assert result.kind is ErrorKind.UNREACHABLE


def test_slow_endpoints_do_not_take_the_site_s_threads(server, monkeypatch):
    monkeypatch.setattr(probing, "LIMITS", Limits(total_seconds=3, idle_seconds=3))
    slow, quick = endpoint(server.at("silent")), endpoint(server.at("plain"))
    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(probe, slow, Parameters()) for _ in range(2)]
        while len(server.seen) < 2:
            time.sleep(0.01)
        third = probe(quick, Parameters())
        assert not any(one.done() for one in under_way)
    assert (third.ok, third.kind) == (False, ErrorKind.RATE_LIMIT)
    assert third.message == "2 connections are being tested already; try again in a minute"
    assert [one.result().kind for one in under_way] == [ErrorKind.TIMEOUT] * 2
    assert probe(quick, Parameters()).ok
