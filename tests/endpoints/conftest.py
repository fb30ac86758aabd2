"""A server of quirks on this machine, which the settings allow, and one way to call it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

import tests.endpoints.quirks_of_errors
import tests.endpoints.quirks_of_other_apis
import tests.endpoints.quirks_of_replies
import tests.endpoints.quirks_of_streams  # noqa: F401
from evaluator.agent.messages import Message
from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.replies import Reply
from tests.endpoints.scripted import QuirkServer

KEY = "sk-canary-5f0c9e7d1b"
LIMITS = Limits(total_seconds=20, idle_seconds=10)
MESSAGES = (
    Message(role="system", content="You write kernels."),
    Message(role="user", content="Write one."),
)

Ask = Callable[..., Reply]


@pytest.fixture
def server(tmp_path: Path, settings: pytest.FixtureRequest) -> Iterator[QuirkServer]:
    settings.PTXBOARD_ENDPOINT_HOSTS = ["127.0.0.1"]
    with QuirkServer(tmp_path) as server:
        server.start()
        yield server


@pytest.fixture
def ask(server: QuirkServer) -> Ask:
    """`ask("quirk")` is one call to it."""

    def call(
        quirk: str,
        api: Api = Api.CHAT,
        *,
        limits: Limits = LIMITS,
        key: str = KEY,
        label: str = "",
        **parameters: object,
    ) -> Reply:
        url = server.at(quirk)
        endpoint = Endpoint(api=api, base_url=url, model="asked", key=SecretStr(key))
        wanted = Parameters.model_validate(parameters)
        return complete(endpoint, MESSAGES, wanted, limits=limits, label=label)

    return call


@pytest.fixture
def failure(ask: Ask) -> Callable[..., EndpointError]:
    """The error that a call to a quirk ends with."""

    def call(*arguments: object, **more: object) -> EndpointError:
        with pytest.raises(EndpointError) as caught:
            ask(*arguments, **more)
        return caught.value

    return call
