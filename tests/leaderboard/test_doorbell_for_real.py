"""The site's own Celery process on the broker that needs no server: it keeps its duties."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUBMIT = """
import django, sys
django.setup()
from django.contrib.auth.models import User
from leaderboard.services.entrants import entrant_of
from leaderboard.services.submissions import Draft, submission_create
user = User.objects.create_user("alice")
draft = Draft(problem="gemm_n256_k256", target="host", sources=[("k.cpp", "int x;")])
print(submission_create(entrant=entrant_of(user=user), draft=draft).submission.pk)
"""


@pytest.mark.slow
def test_messages_reach_the_folder_and_lapsed_leases_are_reaped(tmp_path):
    var = tmp_path / "var"
    environment = {
        **os.environ,
        "PTXBOARD_VAR": str(var),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "PYTHONWARNINGS": "ignore",
    }
    for name in ("PTXBOARD_DATABASE_URL", "PTXBOARD_BROKER_URL"):
        environment.pop(name, None)

    def run(*command):
        subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)

    run("manage.py", "migrate", "-v0")
    run("manage.py", "sync_catalogue", "-v0")
    run("-c", SUBMIT)
    messages = [path.name for path in (var / "broker" / "messages").iterdir()]
    assert [name.split(".")[-2] for name in messages] == ["build"]
    with closing(sqlite3.connect(var / "ptxboard.sqlite3")) as database:
        database.execute(
            "UPDATE leaderboard_attempt SET state = 'RUNNING', worker = 'gone', "
            "fence = id, claimed_at = created_at, lease_until = created_at"
        )
        database.commit()
    command = [sys.executable, "-m", "celery", "-A", "webapp", "worker", "-B", "-Q", "io"]
    command += ["--pool", "solo", "--without-gossip", "--without-mingle"]
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        assert reaped(var, 45) == [("EXPIRED", 1), ("QUEUED", 2)], log.read_text()[-3000:]
    finally:
        process.terminate()
        process.wait(30)


def reaped(var, seconds):
    """Attempts as (state, number), once there are two or the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        with closing(sqlite3.connect(var / "ptxboard.sqlite3")) as database:
            rows = database.execute(
                "SELECT state, number FROM leaderboard_attempt ORDER BY number"
            ).fetchall()
        if len(rows) > 1 or time.monotonic() > deadline:
            return rows
        time.sleep(0.3)
