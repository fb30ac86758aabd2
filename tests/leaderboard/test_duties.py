"""Reconciler and reaper: nothing is lost with a broker, a worker or the site itself."""

from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboard.models import Attempt, DutyRun, Submission, Worker
from leaderboard.services.duties import reap, reconcile
from tests.leaderboard.bodies import host_body, problem_of

URL = "/api/v1/submissions/"


@pytest.fixture
def identifier(problems, alice_api):
    return alice_api.post(URL, host_body(), format="json").json()["id"]


def lapse():
    Attempt.objects.filter(state="RUNNING").update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )


def test_it_rings_for_what_was_never_rung(identifier, doorbell):
    assert reconcile() == 1
    assert doorbell.rings == [("build", str(Attempt.objects.get().pk))]


def test_it_rings_again_after_half_a_minute_then_ever_later(identifier, doorbell):
    now = timezone.now()
    reconcile(now)
    waits = []
    for _ in range(7):
        rung = Attempt.objects.get().doorbell_at
        seconds = next(
            seconds
            for seconds in range(0, 700, 10)
            if reconcile(rung + timedelta(seconds=seconds)) == 1
        )
        waits.append(seconds)
    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_a_clock_that_was_set_back_an_hour_does_not_keep_it_silent(identifier, doorbell):
    now = timezone.now()
    Attempt.objects.update(doorbell_at=now + timedelta(hours=1), doorbell_count=1)
    assert reconcile(now) == 1


def test_where_a_worker_is_online_the_wait_grows_to_a_minute_only(identifier, machine, doorbell):
    assert machine.post("hello", machine.hello()).status_code == 200
    waits = []
    for _ in range(5):
        rung = Attempt.objects.get().doorbell_at
        Worker.objects.update(last_seen=rung + timedelta(hours=1))
        waits.append(
            next(
                seconds
                for seconds in range(0, 700, 10)
                if reconcile(rung + timedelta(seconds=seconds)) == 1
            )
        )
    assert waits == [30, 60, 60, 60, 60]


def test_a_worker_of_another_target_shortens_no_wait(identifier, machine, doorbell):
    machine.targets = ("h200",)
    machine.post("hello", machine.hello())
    now = timezone.now()
    Attempt.objects.update(doorbell_at=now, doorbell_count=6)
    Worker.objects.update(last_seen=now + timedelta(hours=1))
    assert reconcile(now + timedelta(seconds=599)) == 0
    assert reconcile(now + timedelta(seconds=600)) == 1


def test_of_a_long_queue_only_the_oldest_are_rung_every_minute(
    problems, alice_api, machine, settings
):
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 100
    for number in range(25):
        alice_api.post(URL, host_body(source=f"int a{number};"), format="json")
    machine.post("hello", machine.hello())
    now = timezone.now()
    Attempt.objects.update(doorbell_at=now, doorbell_count=6)
    Worker.objects.update(last_seen=now + timedelta(hours=1))
    assert reconcile(now + timedelta(seconds=60)) == 20


def test_a_broker_that_forgot_everything_hears_of_all_work_again(
    problems, alice_api, doorbell, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        for number in range(3):
            alice_api.post(URL, host_body(source=f"int a{number};"), format="json")
    forgotten = sorted(doorbell.rings)
    doorbell.rings.clear()
    assert reconcile() == 0
    assert reconcile(timezone.now() + timedelta(seconds=31)) == 3
    assert sorted(doorbell.rings) == forgotten


def test_it_stops_at_the_first_refusal_of_the_broker(identifier, doorbell):
    doorbell.away = True
    assert reconcile() == 0
    assert Attempt.objects.get().doorbell_at is None


def test_running_and_ended_work_is_not_rung_for(identifier, machine, doorbell):
    machine.order()
    assert reconcile() == 0


def test_a_live_lease_is_left_alone(identifier, machine):
    machine.order()
    assert reap() == 0
    assert Attempt.objects.get().state == "RUNNING"


@pytest.mark.usefixtures("no_delay")
def test_a_lapsed_lease_gives_the_work_to_another_and_the_late_one_409(
    identifier, machine, alice_api
):
    late = machine.order()
    machine.stage(late, machine.results(late)[0])
    lapse()
    assert reap() == 1
    lost, fresh = Attempt.objects.order_by("number")
    assert (lost.state, fresh.state) == ("EXPIRED", "QUEUED")
    assert lost.message == "the worker stopped answering during compilation"
    problem_of(machine.complete(late), 409)
    problem_of(machine.heartbeat(late), 409)
    problem_of(machine.stage(late, machine.results(late)[1]), 409)
    machine.run(machine.order())
    machine.run(machine.order())
    problem_of(machine.complete(late), 409)
    seen = alice_api.get(f"{URL}{identifier}/").json()
    assert seen["verdict"] == "PASSED"
    assert len(alice_api.get("/api/v1/boards/host/gemm_n256_k256/").json()["rows"]) == 1


def test_a_late_completion_before_the_reaper_came_is_taken(identifier, machine):
    order = machine.order()
    for result in machine.results(order):
        machine.stage(order, result)
    lapse()
    assert machine.complete(order).status_code == 200
    assert reap() == 0


@pytest.mark.usefixtures("no_delay")
def test_a_job_that_kills_its_worker_ends_after_three(identifier, machine, alice_api):
    for _ in range(3):
        machine.order()
        lapse()
        assert reap() == 1
    assert machine.claim().status_code == 204
    seen = alice_api.get(f"{URL}{identifier}/").json()
    assert (seen["state"], seen["verdict"]) == ("FAULTED", None)
    assert seen["message"].startswith(
        "INFRA_ERROR: our build worker failed 3 times (the worker stopped answering during policy)."
    )
    assert Attempt.objects.filter(state="EXPIRED").count() == 3
    (worker,) = alice_api.get("/api/v1/workers/").json()
    assert worker["attempts_lost_last_day"] == 3


def test_a_worker_that_was_killed_and_says_so_counts_as_one_that_lost_a_job(
    identifier, machine, alice_api
):
    machine.complete(machine.order(), "faulted", "the worker was killed and has started anew")
    (worker,) = alice_api.get("/api/v1/workers/").json()
    assert worker["attempts_lost_last_day"] == 1


def test_the_site_forgives_silence_while_it_was_away_itself(identifier, machine):
    machine.order()
    reap()
    lapse()
    DutyRun.objects.update(ran_at=timezone.now() - timedelta(seconds=31))
    assert reap() == 0
    attempt = Attempt.objects.get()
    assert attempt.state == "RUNNING"
    assert attempt.lease_until > timezone.now() + timedelta(seconds=50)
    lapse()
    assert reap() == 1


def test_a_cancelled_attempt_is_not_reaped(identifier, machine, alice_api):
    machine.order()
    alice_api.post(f"{URL}{identifier}/cancel/")
    lapse()
    assert reap() == 0
    assert Submission.objects.get().state == "CANCELLED"


def test_the_schedule_runs_both_duties_on_the_queue_of_the_site():
    from webapp.celery import app

    duties = {entry["task"]: entry for entry in app.conf.beat_schedule.values()}
    assert set(duties) == {"leaderboard.reconcile", "leaderboard.reap"}
    for entry in duties.values():
        assert entry["schedule"] == 10.0
        assert entry["options"]["queue"] == "io"
    assert set(duties) <= set(app.tasks) or app.loader.import_default_modules() is not None
