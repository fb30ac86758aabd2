"""Every test of the site has its own artifact folder and a doorbell that only notes the rings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError

from evaluator.targets import TARGETS
from examples.scripted_endpoint import ScriptedServer
from leaderboard.services.tokens import token_create
from leaderboard.views.kept import ANSWERS
from tests.leaderboard.machine import Machine
from tests.leaderboard.runs import Model


@dataclass(slots=True)
class Doorbell:
    """The broker's place: rings as (queue, id of attempt or trajectory); `away` makes it refuse."""

    rings: list[tuple[str, str]] = field(default_factory=list)
    away: bool = False

    def send_task(self, name: str, *, args: list[str], queue: str, retry: bool) -> None:
        models = queue == "models"
        assert name == ("leaderboard.advance_trajectory" if models else "ptxboard.evaluate")
        if self.away:
            raise OperationalError("connection refused")
        self.rings.append((queue, args[0]))


@pytest.fixture(autouse=True)
def doorbell(monkeypatch: pytest.MonkeyPatch, private_var: Path) -> Doorbell:
    bell = Doorbell()
    monkeypatch.setattr("leaderboard.services.doorbell.app.send_task", bell.send_task)
    return bell


@pytest.fixture(autouse=True)
def no_kept_answers() -> None:
    """Rows of another test have the same numbers, and so their boards the same tags."""
    ANSWERS.clear()


@pytest.fixture
def machine(problems: dict[str, object]) -> Machine:
    """A machine with a worker token that builds for and runs on every target."""
    _, secret = token_create(worker_name="lab-1", lanes=["build"], targets=list(TARGETS))
    return Machine(name="lab-1", secret=secret)


@pytest.fixture
def model(tmp_path: Path, settings: pytest.FixtureRequest) -> Iterator[Model]:
    """A scripted model endpoint on this machine, which the operator allows."""
    settings.PTXBOARD_ENDPOINT_HOSTS = ["127.0.0.1"]
    folder = tmp_path / "answers"
    folder.mkdir()
    with ScriptedServer(folder) as server:
        server.start()
        yield Model(server=server, folder=folder)


@pytest.fixture
def no_delay(settings: pytest.FixtureRequest) -> None:
    """Faults are retried at once, for tests that are about something else."""
    settings.PTXBOARD_RETRY_DELAYS_SECONDS = (0, 0)


@pytest.fixture(autouse=True)
def quick_passwords(settings: pytest.FixtureRequest) -> None:
    """The real hasher takes a third of a second on purpose; no test here is about it."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
