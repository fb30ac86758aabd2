"""Who is who: Alice submits, Bob is another author, Carol is staff, a visitor is nobody."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from leaderboard.models import Entrant, Problem
from leaderboard.services.catalogue import catalogue_sync
from leaderboard.services.entrants import entrant_of
from leaderboard.services.tokens import token_create


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """A file, not memory: threads of one test then are real writers that wait for each other."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        path = tmp_path_factory.mktemp("database") / "test.sqlite3"
        database.setdefault("TEST", {})["NAME"] = str(path)


@pytest.fixture
def private_var(tmp_path: Path, settings: pytest.FixtureRequest) -> Path:
    """Artifacts of this test only."""
    settings.PTXBOARD_ARTIFACTS = tmp_path / "artifacts"
    return tmp_path


@pytest.fixture
def problems(db: None) -> dict[str, Problem]:
    """The whole catalogue as rows, by name."""
    from evaluator.problems import load_problems

    catalogue_sync(records=load_problems().values())
    return {row.name: row for row in Problem.objects.current()}


@pytest.fixture
def alice(db: None) -> User:
    return _user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return _user("bob")


@pytest.fixture
def carol(db: None) -> User:
    return _user("carol", is_staff=True)


def _user(name: str, **more: bool) -> User:
    user = User.objects.create_user(name, password="correct horse battery", **more)
    entrant_of(user=user)
    return user


@pytest.fixture
def alice_entrant(alice: User) -> Entrant:
    return entrant_of(user=alice)


@pytest.fixture
def api_for() -> Callable[[User | None], APIClient]:
    """A REST client with a fresh submit token of the user, or with none."""

    def make(user: User | None) -> APIClient:
        client = APIClient(raise_request_exception=False)
        if user is not None:
            _, secret = token_create(user=user)
            client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
        return client

    return make


@pytest.fixture
def alice_api(alice: User, api_for: Callable[[User | None], APIClient]) -> APIClient:
    return api_for(alice)


@pytest.fixture
def bob_api(bob: User, api_for: Callable[[User | None], APIClient]) -> APIClient:
    return api_for(bob)


@pytest.fixture
def carol_api(carol: User, api_for: Callable[[User | None], APIClient]) -> APIClient:
    return api_for(carol)


@pytest.fixture
def visitor_api(db: None, api_for: Callable[[User | None], APIClient]) -> APIClient:
    return api_for(None)
