"""Cancels a submission while the end of its build is being written; run by test_faults.py.

Prints the states that are left: {"submission", "jobs", "attempts", "cancel"}.
"""

import json
import os
import threading
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from leaderboard.models import Attempt, Job, Submission  # noqa: E402
from leaderboard.services import completion  # noqa: E402
from leaderboard.services.tokens import token_create  # noqa: E402
from tests.leaderboard.bodies import host_body  # noqa: E402
from tests.leaderboard.machine import Machine  # noqa: E402

URL = "/api/v1/submissions/"
HOLD_SECONDS = 1.0


def main() -> None:
    call_command("migrate", verbosity=0)
    call_command("sync_catalogue", verbosity=0)
    _, secret = token_create(user=User.objects.create_user("alice"))
    alice = APIClient()
    alice.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    _, worker = token_create(worker_name="lab-1", lanes=["build"], targets=["host"])
    machine = Machine(name="lab-1", secret=worker, targets=("host",))
    identifier = alice.post(URL, host_body(), format="json").json()["id"]
    order = machine.order()
    for result in machine.results(order):
        assert machine.stage(order, result).status_code == 200
    written = hold_the_end_of_the_build()
    ending = threading.Thread(target=lambda: (machine.complete(order), connection.close()))
    ending.start()
    assert written.wait(30), "the build's end was never written"
    answer = alice.post(f"{URL}{identifier}/cancel/")
    ending.join(30)
    print(json.dumps({"cancel": answer.status_code, **states()}))


def hold_the_end_of_the_build() -> threading.Event:
    """The transaction that queues the run stays open for a moment after its last row."""
    written, enqueue = threading.Event(), completion.attempt_enqueue

    def slowly(**arguments: object) -> Attempt:
        attempt = enqueue(**arguments)
        written.set()
        time.sleep(HOLD_SECONDS)
        return attempt

    completion.attempt_enqueue = slowly
    return written


def states() -> dict[str, object]:
    return {
        "submission": Submission.objects.get().state,
        "jobs": list(Job.objects.values_list("state", flat=True)),
        "attempts": list(Attempt.objects.order_by("created_at").values_list("state", flat=True)),
    }


if __name__ == "__main__":
    main()
