"""/healthz and /readyz, for whoever watches the machine."""

from datetime import timedelta

from django.db import DatabaseError
from django.utils import timezone

from leaderboard.models import Attempt, DutyRun
from tests.leaderboard import factories
from tests.leaderboard.bodies import host_body


def test_healthz_says_that_the_process_answers(client):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_readyz_tells_database_broker_and_how_long_work_has_waited(problems, alice_api, client):
    alice_api.post("/api/v1/submissions/", host_body(), format="json")
    Attempt.objects.update(created_at=timezone.now() - timedelta(seconds=90))
    DutyRun.objects.create(name="reap", ran_at=timezone.now() - timedelta(seconds=5))
    body = client.get("/readyz").json()
    assert (body["status"], body["database"], body["broker"]) == ("ready", "ok", "ok")
    assert body["queued_count"] == 1
    assert body["oldest_queued_seconds"] is None  # no worker could take it
    assert 5 <= body["last_reap_seconds"] < 60
    factories.worker("b", ["build"], ["host"], last_seen=timezone.now())
    assert 90 <= client.get("/readyz").json()["oldest_queued_seconds"] < 150


def test_readyz_is_503_when_the_database_is_away(client, monkeypatch):
    def fail():
        raise DatabaseError("gone")

    monkeypatch.setattr("leaderboard.services.readiness._ages", fail)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "does not answer"


def test_readyz_is_503_when_the_broker_is_away(db, client, monkeypatch):
    from webapp.celery import app

    away = app.connection_for_write("redis://127.0.0.1:1/0")
    monkeypatch.setattr(app, "connection_for_write", lambda **_: away)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["broker"] == "does not answer"


def test_every_answer_forbids_inline_script(client):
    policy = client.get("/healthz")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert client.get("/healthz")["X-Content-Type-Options"] == "nosniff"
