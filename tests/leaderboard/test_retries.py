"""After a fault of ours the next attempt waits, and another worker gets it first."""

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluator.targets import TARGETS
from leaderboard.models import Attempt, Worker
from leaderboard.services.duties import reap, reconcile
from leaderboard.services.tokens import token_create
from tests.leaderboard.bodies import host_body, problem_of
from tests.leaderboard.machine import Machine
from tests.leaderboard.reading import Page

URL = "/api/v1/submissions/"


@pytest.fixture
def identifier(problems, alice_api):
    return alice_api.post(URL, host_body(), format="json").json()["id"]


@pytest.fixture
def other(problems):
    """A second machine that can do all that the first can; offline until it says hello."""
    _, secret = token_create(worker_name="lab-2", lanes=["build"], targets=list(TARGETS))
    return Machine(name="lab-2", secret=secret)


def later(seconds):
    """As if so many seconds had passed since the fault; workers stay as fresh as they are."""
    for attempt in Attempt.objects.filter(state="QUEUED"):
        attempt.not_before -= timedelta(seconds=seconds)
        attempt.avoided_until -= timedelta(seconds=seconds)
        attempt.save()


def fault(machine):
    machine.complete(machine.order(), "faulted", "no space left on device")
    return str(Attempt.objects.get(state="QUEUED").pk)


def test_nobody_gets_the_job_for_five_seconds(identifier, machine, other):
    attempt = fault(machine)
    for one in (machine, other):
        assert one.claim().status_code == 204
        told = problem_of(one.claim(attempt), 409)
        assert "after a fault of ours" in told["detail"]
    later(4)
    assert other.claim().status_code == 204
    later(1)
    assert other.order()["number"] == 2


def test_the_second_fault_waits_for_thirty(identifier, machine):
    fault(machine)
    later(10)
    fault(machine)
    later(29)
    assert machine.claim().status_code == 204
    later(1)
    assert machine.order()["number"] == 3


def test_a_lone_worker_gets_its_job_again_after_the_delay(identifier, machine):
    attempt = fault(machine)
    later(5)
    assert machine.order(attempt)["number"] == 2


def test_another_worker_gets_it_first_for_as_long_again(identifier, machine, other):
    other.post("hello", other.hello())
    attempt = fault(machine)
    later(5)
    assert machine.claim().status_code == 204
    told = problem_of(machine.claim(attempt), 409)
    assert "goes to another worker first: 'lab-1' faulted" in told["detail"]
    later(5)
    assert machine.order()["number"] == 2


def test_the_other_worker_need_not_wait_as_long(identifier, machine, other):
    other.post("hello", other.hello())
    fault(machine)
    later(5)
    assert other.order()["number"] == 2


@pytest.mark.parametrize("reason", ["offline", "unfit", "elsewhere"])
def test_a_worker_that_could_not_take_it_is_not_waited_for(identifier, machine, other, reason):
    more = {"state": "unfit"} if reason == "unfit" else {}
    if reason == "elsewhere":
        other.targets = ("h200",)
    other.post("hello", other.hello(**more))
    if reason == "offline":
        Worker.objects.filter(name="lab-2").update(last_seen=timezone.now() - timedelta(minutes=5))
    fault(machine)
    later(5)
    assert machine.order()["number"] == 2


def test_the_worker_is_passed_over_for_that_job_only(identifier, alice_api, machine, other):
    other.post("hello", other.hello())
    alice_api.post(URL, host_body(source="int b;"), format="json")
    order = machine.order()
    machine.complete(order, "faulted", "a hiccup")
    now = timezone.now()
    Attempt.objects.filter(number=2).update(not_before=now, created_at=now - timedelta(hours=1))
    fresh = machine.order()
    assert fresh["number"] == 1
    assert fresh["job"] != order["job"]


def test_the_message_is_sent_when_the_delay_is_over(identifier, machine, doorbell):
    order = machine.order()
    doorbell.rings.clear()
    machine.complete(order, "faulted", "a hiccup")
    assert reconcile() == 0
    later(5)
    assert reconcile() == 1
    assert doorbell.rings == [("build", str(Attempt.objects.get(state="QUEUED").pk))]


def test_a_message_spent_on_the_worker_that_faulted_is_sent_anew(
    identifier, machine, other, doorbell
):
    other.post("hello", other.hello())
    attempt = fault(machine)
    later(5)
    assert reconcile() == 1
    problem_of(machine.claim(attempt), 409)
    assert reconcile() == 1


def test_a_hello_of_the_worker_that_faulted_spends_no_message(identifier, machine, other, doorbell):
    other.post("hello", other.hello())
    attempt = fault(machine)
    later(5)
    doorbell.rings.clear()
    machine.post("hello", machine.hello())
    assert doorbell.rings == []
    other.post("hello", other.hello())
    assert doorbell.rings == [("build", attempt)]


def test_a_worker_that_shuts_down_hands_its_job_on_at_once(
    identifier, machine, other, doorbell, django_capture_on_commit_callbacks
):
    doorbell.rings.clear()
    with django_capture_on_commit_callbacks(execute=True):
        machine.complete(machine.order(), "released", "the worker is shutting down")
    assert len(doorbell.rings) == 1
    assert machine.order()["number"] == 2


def test_a_lapsed_lease_waits_too(identifier, machine):
    machine.order()
    Attempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert reap() == 1
    assert machine.claim().status_code == 204
    later(5)
    assert machine.order()["number"] == 2


def test_the_page_and_the_api_say_how_long_it_waits(identifier, machine, client, alice_api):
    fault(machine)
    text = Page(client.get(f"/submissions/{identifier}/")).text
    assert (
        "Waiting: our build worker lab-1 failed, which is no fault of the kernel; the next attempt "
        "may start in 5 s, on another worker first if one is online." in text
    )
    queue = alice_api.get(f"{URL}{identifier}/").json()["queue"]
    assert queue["not_before"] == Attempt.objects.get(state="QUEUED").not_before.isoformat()
    later(5)
    assert "Number 1 in the queue" in Page(client.get(f"/submissions/{identifier}/")).text
    assert alice_api.get(f"{URL}{identifier}/").json()["queue"]["not_before"] is None
