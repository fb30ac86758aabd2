"""A worker's token opens its own lanes and targets, whatever the worker says that it can do."""

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluator.targets import TARGETS
from leaderboard.models import Attempt, StageRecord, Worker
from leaderboard.services.tokens import BadScope, token_create
from tests.leaderboard.bodies import h200_body, host_body, problem_of
from tests.leaderboard.machine import Machine

URL = "/api/v1/submissions/"


def scoped(name, *, lanes=(), targets=()):
    """A machine that offers just what its token serves."""
    token, secret = token_create(worker_name=name, lanes=lanes, targets=targets)
    return Machine(
        name=name,
        secret=secret,
        lanes=tuple(token.lanes),
        targets=tuple(targets or TARGETS),
    )


@pytest.fixture
def built(alice_api, machine):
    """An h200 kernel whose build is done: its attempt of the GPU lane waits."""
    assert alice_api.post(URL, h200_body(), format="json").status_code == 201
    machine.run(machine.order())
    return str(Attempt.objects.get(state="QUEUED").pk)


def test_a_token_for_host_cannot_claim_h200_by_name(built):
    told = problem_of(scoped("desk", targets=["host"]).claim(built), 403)
    assert "may run on host; asked was to run on h200" in told["detail"]
    assert told["allowed"] == {"lanes": ["gpu"], "targets": ["host"]}
    assert told["asked"] == {"lane": "gpu", "target": "h200"}
    assert Attempt.objects.get(pk=built).state == "QUEUED"


def test_a_token_for_host_cannot_poll_for_h200(built):
    desk = scoped("desk", targets=["host"])
    assert desk.claim().status_code == 204
    desk.targets = ("host", "h200")
    told = problem_of(desk.claim(), 403)
    assert told["asked"] == {"lane": "gpu", "target": "h200"}
    assert Attempt.objects.get(pk=built).state == "QUEUED"


def test_a_token_for_host_cannot_build(alice_api, problems):
    alice_api.post(URL, host_body(), format="json")
    desk = scoped("desk", targets=["host"])
    desk.lanes = ("build", "gpu")
    assert "asked was to build" in problem_of(desk.claim(), 403)["detail"]
    assert Attempt.objects.get().state == "QUEUED"


def test_a_token_for_builds_serves_every_target_but_runs_on_none(built, alice_api):
    builder = scoped("mill", lanes=["build"])
    problem_of(builder.claim(built), 403)
    alice_api.post(URL, h200_body(source="int other;"), format="json")
    assert builder.order()["lane"] == "build"


def test_what_may_be_claimed_is_claimed(built):
    assert scoped("rack", targets=["h200"]).order(built)["attempt"] == built


def test_a_hello_that_offers_more_than_the_token_is_refused_and_not_listed(problems):
    desk = scoped("desk", targets=["host"])
    desk.targets = tuple(TARGETS)
    problem_of(desk.post("hello", desk.hello()), 403)
    assert Worker.objects.count() == 0


@pytest.mark.parametrize("call", ["heartbeat", "stage", "complete", "put"])
def test_a_fence_in_foreign_hands_opens_nothing(built, machine, call):
    order = machine.order()
    desk = scoped("desk", targets=["host"])
    answer = {
        "heartbeat": lambda: desk.heartbeat(order),
        "stage": lambda: desk.stage(order, machine.results(order)[0]),
        "complete": lambda: desk.complete(order),
        "put": lambda: desk.put(order, b"log"),
    }[call]()
    problem_of(answer, 403)
    assert Attempt.objects.get(pk=built).state == "RUNNING"
    assert StageRecord.objects.filter(attempt=built).count() == 0


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ({}, "nothing was given"),
        ({"lanes": ["gpu"]}, "lane gpu alone was given"),
        ({"lanes": ["bulid"]}, "there is no lane 'bulid'; lanes are: build, gpu"),
        ({"targets": ["h2000"]}, "there is no target 'h2000'"),
    ],
)
def test_a_token_that_would_open_nothing_is_not_made(db, scope, words):
    with pytest.raises(BadScope, match=words):
        token_create(worker_name="desk", **scope)


def test_nobody_speaks_for_anothers_worker_while_it_is_online(problems):
    rack, thief = scoped("rack", targets=["h200"]), scoped("thief", targets=["host"])
    rack.post("hello", rack.hello())
    thief.name = "rack"
    for answer in (thief.post("hello", thief.hello()), thief.claim()):
        assert "start this one with another --name" in problem_of(answer, 403)["detail"]
    assert Worker.objects.get().targets == ["h200"]
    Worker.objects.update(last_seen=timezone.now() - timedelta(seconds=61))
    assert thief.post("hello", thief.hello()).status_code == 200
    assert Worker.objects.get().targets == ["host"]
