"""Many steps at once, as in production: no call twice, no place too many, nobody waits for ever."""

import threading
import time
from dataclasses import replace

import pytest
from django.db import connection
from django.db.models import Count
from rest_framework.test import APIClient

from leaderboard.models import ModelRun, Trajectory, Turn
from leaderboard.services.duties import reconcile
from tests.leaderboard.runs import RUNS, advance, evaluate, kernel, run_body

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TRAJECTORIES = 6
PLACES = 3


class Hands:
    """Threads that repeat a step until told to stop; what one raised is kept."""

    def __init__(self) -> None:
        self.over, self.errors = threading.Event(), []
        self.threads: list[threading.Thread] = []

    def start(self, step) -> None:
        thread = threading.Thread(target=self._repeat, args=(step,))
        self.threads.append(thread)
        thread.start()

    def _repeat(self, step) -> None:
        try:
            while not self.over.is_set():
                step()
                time.sleep(0.01)
        except BaseException as error:
            self.errors.append(error)
        finally:
            connection.close()

    def stop(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.fixture
def started(problems, alice_api, model):
    """Two runs of the same model; every kernel of every trajectory is its own."""
    for trajectory in range(1, TRAJECTORIES + 1):
        for turn in range(3):
            note = f"speedup 0.{turn + 1}\n// of trajectory {trajectory}"
            model.say_text(turn, kernel(note), trajectory=trajectory)
    body = run_body(model.url, trajectories=TRAJECTORIES, max_parallel=PLACES)
    answers = [alice_api.post(RUNS, body, format="json") for _ in range(2)]
    return [answer.json()["runs"][0] for answer in answers]


def same(api: APIClient) -> APIClient:
    """A client of the thread's own."""
    client = APIClient(raise_request_exception=False)
    client.credentials(**api._credentials)
    return client


def test_two_runs_go_on_at_once_and_one_is_cancelled(started, model, machine, doorbell, alice_api):
    first, second = started
    most_active = []

    def look() -> None:
        seen = Trajectory.objects.active().values("run").annotate(count=Count("pk"))
        most_active.extend(row["count"] for row in seen)

    def work() -> None:
        try:
            evaluate(replace(machine, client=same(machine.client)))
        except AssertionError as error:  # a worker lets go of what was cancelled under its hands
            if "is CANCELLED; nothing is added to it" not in str(error):
                raise

    hands = Hands()
    for step in (*[lambda: advance(doorbell)] * 4, *[work] * 3, look, reconcile):
        hands.start(step)
    until(lambda: Turn.objects.filter(trajectory__run=second["id"]).count() >= 4 or hands.errors)
    assert alice_api.post(f"{second['url']}cancel/").status_code == 200
    until(lambda: not ModelRun.objects.open().exists() or hands.errors)
    hands.stop()
    assert hands.errors == []
    assert max(most_active) <= PLACES
    states = dict(ModelRun.objects.values_list("pk", "state"))
    assert {str(pk): state for pk, state in states.items()} == {
        first["id"]: "DONE",
        second["id"]: "CANCELLED",
    }
    done = Turn.objects.filter(trajectory__run=first["id"])
    assert done.counted().count() == done.count() == 3 * TRAJECTORIES
    dropped = model.call_count - Turn.objects.count()  # calls that the cancel caught under way
    assert 0 <= dropped <= PLACES


def until(condition, seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)
