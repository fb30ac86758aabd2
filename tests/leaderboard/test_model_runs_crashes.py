"""A process that dies anywhere repeats one step at most; a stored turn is never asked for again."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from leaderboard.models import Attempt, DutyRun, Submission, Trajectory, Turn
from leaderboard.services.duties import reap, reconcile
from leaderboard.services.model_runs import advancing, claiming, closing, storing
from leaderboard.tasks import advance_trajectory
from tests.leaderboard.runs import (
    RUNS,
    advance,
    evaluate,
    play,
    run_body,
    the_run,
    the_trajectory,
    turns,
)

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """The process is gone: nothing below catches this, no `finally` of ours may mend the rows."""


@pytest.fixture
def started(problems, alice_api, model):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    answer = alice_api.post(RUNS, run_body(model.url), format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()["runs"][0]


def killed_in(monkeypatch, module, name, doorbell):
    """The next step dies where `module.name` would have been called."""

    def die(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module, name, die)
        with pytest.raises(Killed):
            advance(doorbell)


def lapse():
    """A lease later: nobody has beaten for the call under way, and the reaper is not new."""
    past = timezone.now() - timedelta(seconds=1)
    Trajectory.objects.filter(state="CALLING").update(lease_until=past)
    DutyRun.objects.update(ran_at=timezone.now())


def minutes_later(minutes=10):
    past = timezone.now() - timedelta(minutes=minutes)
    Trajectory.objects.exclude(next_at=None).update(next_at=past)
    Trajectory.objects.exclude(doorbell_at=None).update(doorbell_at=past)


def goes_on(doorbell, machine):
    """Duties run, time passes, and the run ends with each turn stored once."""
    reap()
    minutes_later()
    reconcile()
    play(doorbell, machine)
    assert turns("number", "excluded", "verdict") == [
        (1, False, "PASSED"),
        (2, False, "PASSED"),
        (3, False, "PASSED"),
    ]
    assert the_run().state == "DONE"


@pytest.mark.parametrize(
    ("module", "name", "calls"),
    [
        (advancing, "call_of", 3),
        (advancing, "complete", 3),
        (advancing, "turn_store", 4),
        (storing, "submission_of_turn", 4),
        (storing, "trajectory_put", 4),
    ],
)
def test_death_around_the_call_repeats_that_call_only(
    started, model, machine, doorbell, monkeypatch, module, name, calls
):
    killed_in(monkeypatch, module, name, doorbell)
    assert the_trajectory().state == "CALLING"
    assert Turn.objects.count() == Submission.objects.count() == 0
    assert (advance(doorbell), reconcile()) == (0, 0)
    lapse()
    assert reap() == 1
    goes_on(doorbell, machine)
    assert model.call_count == calls


def test_death_in_a_later_turn_repeats_no_turn_before_it(
    started, model, machine, doorbell, monkeypatch
):
    advance(doorbell)
    evaluate(machine)
    killed_in(monkeypatch, advancing, "turn_store", doorbell)
    assert turns("number", "verdict") == [(1, "PASSED")]
    lapse()
    goes_on(doorbell, machine)
    assert model.call_count == 4


def test_a_broker_that_is_away_after_the_store_costs_time_only(started, model, machine, doorbell):
    doorbell.away = True
    advance(doorbell)
    assert turns("number") == [1]
    assert evaluate(machine) == 2
    assert doorbell.rings == []
    doorbell.away = False
    assert reconcile() == 1
    goes_on(doorbell, machine)
    assert model.call_count == 3


@pytest.mark.parametrize("name", ["feedback_of", "trajectory_put"])
def test_death_while_a_turn_is_closed_asks_the_model_nothing_again(
    started, model, machine, doorbell, monkeypatch, name
):
    advance(doorbell)
    evaluate(machine)
    killed_in(monkeypatch, closing, name, doorbell)
    assert the_trajectory().state == "EVALUATING"
    assert Turn.objects.get().closed_at is None
    minutes_later()
    assert reconcile() == 1
    goes_on(doorbell, machine)
    assert model.call_count == 3


def test_a_worker_that_dies_while_it_evaluates_costs_no_call(
    started, model, machine, doorbell, no_delay
):
    advance(doorbell)
    machine.order()
    Attempt.objects.filter(state="RUNNING").update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )
    assert reap() == 1
    goes_on(doorbell, machine)
    assert model.call_count == 3


def test_a_call_that_dies_again_and_again_pauses_the_run(started, model, doorbell, monkeypatch):
    for _ in range(5):
        killed_in(monkeypatch, advancing, "complete", doorbell)
        lapse()
        reap()
        minutes_later()
        reconcile()
    run = the_run()
    assert run.state == "PAUSED"
    assert "ended before it was stored (5 calls in a row failed)" in run.reason
    assert model.call_count == 0


def test_a_reply_that_comes_after_its_lease_was_given_away_is_dropped(
    started, model, machine, doorbell, monkeypatch
):
    late = {}
    store = storing.turn_store

    def hold(call, reply):
        late.update(call=call, reply=reply)

    with monkeypatch.context() as patch:
        patch.setattr(advancing, "turn_store", hold)
        advance(doorbell)
    lapse()
    reap()
    minutes_later()
    reconcile()
    advance(doorbell)
    assert turns("number") == [1]
    assert store(late["call"], late["reply"]) is None
    assert turns("number") == [1]
    goes_on(doorbell, machine)


def test_a_reply_that_comes_after_the_cancel_is_dropped(
    started, model, doorbell, monkeypatch, alice_api
):
    ask = advancing.complete

    def cancelled_meanwhile(*args, **kwargs):
        reply = ask(*args, **kwargs)
        assert alice_api.post(f"{started['url']}cancel/").status_code == 200
        return reply

    monkeypatch.setattr(advancing, "complete", cancelled_meanwhile)
    advance(doorbell)
    assert Turn.objects.count() == Submission.objects.count() == 0
    assert the_run().state == "CANCELLED"


def test_rings_at_once_make_one_call(started, model, doorbell):
    model.server.delay_seconds = 0.3
    trajectory_id = str(the_trajectory().pk)

    def ring():
        try:
            advance_trajectory(trajectory_id)
        finally:
            connection.close()

    threads = [threading.Thread(target=ring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.call_count == 1
    assert turns("number") == [1]


def test_a_long_call_keeps_its_lease_by_its_beats(started, model, doorbell, monkeypatch):
    model.server.delay_seconds = 0.5
    seen = []
    lengthen = claiming._lengthen

    def counted(claim):
        Trajectory.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        lengthen(claim)
        seen.append(the_trajectory().lease_until > timezone.now())

    monkeypatch.setattr(claiming, "_lengthen", counted)
    monkeypatch.setattr(claiming, "BEAT_SECONDS", 0.1)
    advance(doorbell)
    assert len(seen) >= 2
    assert all(seen)
    assert turns("number") == [1]


def test_after_the_site_was_away_a_call_gets_another_term(started, doorbell, monkeypatch):
    killed_in(monkeypatch, advancing, "complete", doorbell)
    DutyRun.objects.update_or_create(
        name="reap", defaults={"ran_at": timezone.now() - timedelta(minutes=5)}
    )
    Trajectory.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert reap() == 0
    assert the_trajectory().state == "CALLING"
    assert the_trajectory().lease_until > timezone.now()
