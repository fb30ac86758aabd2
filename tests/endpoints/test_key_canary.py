"""The key is nowhere: every quirk is called with a canary key, and everything left is searched."""

import logging
import traceback
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.probing import probe
from tests.endpoints.conftest import KEY, MESSAGES
from tests.endpoints.scripted import QUIRKS

SHORT = Limits(total_seconds=2, idle_seconds=0.3, reply_bytes=1 << 20)


def left_by(error: BaseException) -> str:
    """What a log, a debug page and an error collector would show of an exception."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "\n".join((repr(error), str(error), repr(error.__dict__), *shown.format()))


@pytest.fixture(autouse=True)
def every_log() -> Iterator[None]:
    """The clients and their connections at DEBUG, below what the site's settings let through."""
    names = ("openai", "anthropic", "httpx2", "httpcore2", "leaderboard", "asyncio")
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize("quirk", QUIRKS)
def test_no_path_shows_the_key(server, caplog, quirk):
    api = {"messages": Api.MESSAGES, "responses": Api.RESPONSES}.get(quirk.split("_")[0], Api.CHAT)
    endpoint = Endpoint(api=api, base_url=server.at(quirk), model="asked", key=SecretStr(KEY))
    left = [repr(endpoint), str(endpoint)]
    try:
        reply = complete(endpoint, MESSAGES, Parameters(), limits=SHORT)
        left += [repr(reply), reply.to_json()]
    except EndpointError as error:
        left += [left_by(error), *map(left_by, filter(None, (error.__cause__, error.__context__)))]
    left += [repr(vars(record)) + record.getMessage() for record in caplog.records]
    assert KEY not in "\n".join(left)
    assert KEY in repr(server.seen)


@pytest.mark.parametrize("url", ["https://10.0.0.5/v1", "http://127.0.0.1:1/v1", "nonsense", ""])
def test_no_refused_address_shows_the_key(server, caplog, url):
    endpoint = Endpoint(api=Api.CHAT, base_url=url, model="asked", key=SecretStr(KEY))
    with pytest.raises(EndpointError) as caught:
        complete(endpoint, MESSAGES, Parameters(), limits=SHORT)
    assert KEY not in left_by(caught.value) + caplog.text


def test_a_key_that_an_endpoint_echoes_is_taken_out_everywhere(ask):
    reply = ask("echoes_key")
    assert reply.text == reply.reasoning == "[key] [key]\ufffd\ufffd"
    assert (reply.model, reply.finish_reason) == ("[key]", "[key]")
    assert "[key]" in reply.raw


def test_a_key_that_an_error_echoes_is_taken_out(failure):
    assert "Incorrect API key provided: [key]" in failure("echoes_key_in_error").message


def test_a_path_that_an_error_echoes_is_taken_out(server):
    """A run's reason is public, and of its address only the host is."""
    url = server.at("echoes_path/team-secret-77")
    endpoint = Endpoint(api=Api.CHAT, base_url=url, model="asked", key=SecretStr(KEY))
    with pytest.raises(EndpointError) as caught:
        complete(endpoint, MESSAGES, Parameters())
    assert "there is no [path]/chat/completions" in caught.value.message


def test_a_probe_does_not_show_the_key(server):
    url = server.at("echoes_key_in_error")
    endpoint = Endpoint(api=Api.CHAT, base_url=url, model="asked", key=SecretStr(KEY))
    assert KEY not in repr(probe(endpoint, Parameters()))


def test_the_settings_keep_the_clients_quiet(settings):
    """At DEBUG they write requests and whole replies, in which an endpoint may echo the key."""
    loggers = settings.LOGGING["loggers"]
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        assert loggers[name] == {"level": "WARNING"}
