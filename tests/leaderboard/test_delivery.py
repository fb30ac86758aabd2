"""Messages that come twice, late or not at all change nothing: the claim and its lease decide."""

from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboard.models import Attempt, Evaluation, Job
from leaderboard.services.duties import reap, reconcile
from tests.leaderboard.bodies import host_body, problem_of

URL = "/api/v1/submissions/"
BOARD = "/api/v1/boards/host/gemm_n256_k256/"


def submit(api, text="int a;"):
    return api.post(URL, host_body(source=text), format="json").json()["id"]


def lapse():
    past = timezone.now() - timedelta(seconds=1)
    Attempt.objects.filter(state="RUNNING").update(lease_until=past)


def at(monkeypatch, moment):
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)


def test_a_message_that_comes_again_during_a_long_job_changes_nothing(
    problems, alice_api, machine, monkeypatch
):
    """Field case O-37: 75 s of work, beats every 20 s, the broker delivers again at 30 and 60 s."""
    identifier = submit(alice_api)
    machine.run(machine.order())
    start = timezone.now()
    order = machine.order()
    for seconds in range(5, 80, 5):
        at(monkeypatch, start + timedelta(seconds=seconds))
        if seconds % 20 == 0:
            assert machine.heartbeat(order).status_code == 200
        if seconds in (30, 60):
            told = problem_of(machine.claim(order["attempt"]), 409)
            assert "is RUNNING by lab-1, not QUEUED" in told["detail"]
        assert reap() == 0
        assert reconcile() == 0
    machine.run(order)
    problem_of(machine.claim(order["attempt"]), 409)
    assert Evaluation.objects.filter(submission_id=identifier).count() == 1
    assert Attempt.objects.filter(lane="gpu").count() == 1
    assert len(alice_api.get(BOARD).json()["rows"]) == 1


def test_without_beats_the_lease_ends_after_a_minute(problems, alice_api, machine, monkeypatch):
    submit(alice_api)
    start = timezone.now()
    machine.order()
    reap()
    at(monkeypatch, start + timedelta(seconds=25))
    assert reap() == 0
    at(monkeypatch, start + timedelta(seconds=50))
    assert reap() == 0
    at(monkeypatch, start + timedelta(seconds=70))
    assert reap() == 1


@pytest.mark.usefixtures("no_delay")
def test_a_job_that_kills_its_worker_lets_the_others_go_first(problems, alice_api, machine):
    """Field case O-38: between two tries of the poisonous job the others get their turn."""
    poison, other = submit(alice_api, "int poison;"), submit(alice_api, "int fine;")
    first = machine.order()
    assert str(Job.objects.get(pk=first["job"]).submission_id) == poison
    lapse()
    assert reap() == 1
    second = machine.order()
    assert str(Job.objects.get(pk=second["job"]).submission_id) == other


@pytest.mark.usefixtures("no_delay")
def test_a_crashing_job_is_kept_with_all_its_attempts(problems, alice_api, machine):
    identifier = submit(alice_api)
    for _ in range(3):
        machine.order()
        lapse()
        reap()
    seen = alice_api.get(f"{URL}{identifier}/").json()
    assert seen["state"] == "FAULTED"
    attempts = Job.objects.get().attempts.order_by("number")
    assert [one.state for one in attempts] == ["EXPIRED"] * 3
    assert {one.worker for one in attempts} == {"lab-1"}
    assert alice_api.post(f"{URL}{identifier}/rerun/").status_code == 202


@pytest.mark.parametrize("state", ["FINISHED", "FAULTED", "EXPIRED", "RELEASED", "CANCELLED"])
def test_a_message_for_an_attempt_that_ended_is_dropped(problems, alice_api, machine, state):
    submit(alice_api)
    attempt = Attempt.objects.get()
    Attempt.objects.update(state=state)
    told = problem_of(machine.claim(str(attempt.pk)), 409)
    assert f"is {state}, not QUEUED" in told["detail"]
    assert Attempt.objects.get().state == state
