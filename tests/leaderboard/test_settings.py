"""Settings fail in words; the schema is whole; migrations match the models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from leaderboard.checks import check_endpoint_settings, check_settings
from webapp.environ import env_bool, env_int, env_list, env_path, env_url, postgresql

ROOT = Path(__file__).resolve().parents[2]


def django(tmp_path, *arguments, **environment):
    """manage.py in a fresh process with only these settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**kept, "PTXBOARD_VAR": str(tmp_path / "var"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_migrations_match_the_models(db):
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_one_machine_needs_no_setting_at_all(tmp_path):
    made = django(tmp_path, "check")
    assert made.returncode == 0, made.stderr
    key = (tmp_path / "var" / "secret_key").read_text()
    assert len(key) >= 50
    assert (tmp_path / "var" / "secret_key").stat().st_mode & 0o077 == 0
    django(tmp_path, "check")
    assert (tmp_path / "var" / "secret_key").read_text() == key


def test_production_without_a_secret_key_says_what_to_do(tmp_path):
    made = django(tmp_path, "check", PTXBOARD_DATABASE_URL="postgresql://u:hidden@h/db")
    assert made.returncode != 0
    assert "PTXBOARD_SECRET_KEY is not set" in made.stderr
    assert "hidden" not in made.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("Yes", True), ("off", False), ("", True)]
)
def test_a_bool_takes_the_usual_words(monkeypatch, text, value):
    monkeypatch.setenv("X", text)
    assert env_bool("X", True) is value


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (lambda: env_bool("X", True), "maybe", "X is 'maybe'; use one of 1, true"),
        (lambda: env_int("X", 3, at_least=1), "0", "X is '0'; use a whole number of at least 1"),
        (lambda: env_int("X", 3), "ten", "X is 'ten'"),
        (lambda: env_path("X", Path("a")), "/dev/null/a", "cannot be made a folder"),
        (lambda: env_url("X", "", schemes=("redis",)), "amqp://h", "X starts with 'amqp'"),
        (lambda: postgresql("postgresql://h/"), "", "names no database"),
    ],
)
def test_a_wrong_value_names_variable_value_and_choices(monkeypatch, read, text, message):
    monkeypatch.setenv("X", text)
    with pytest.raises(ImproperlyConfigured, match=message):
        read()


def test_a_url_of_postgresql_becomes_settings():
    made = postgresql("postgresql://me:p%40ss@db.example:5433/board?sslmode=require")
    assert (made["USER"], made["PASSWORD"], made["HOST"]) == ("me", "p@ss", "db.example")
    assert (made["PORT"], made["NAME"]) == ("5433", "board")
    assert made["OPTIONS"] == {"sslmode": "require"}


def test_a_list_drops_blanks(monkeypatch):
    monkeypatch.setenv("X", "a, b,,")
    assert env_list("X", ["c"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "identifier"),
    [
        ({"PTXBOARD_BROKER_URL": "memory://", "DEBUG": False}, "leaderboard.E001"),
        ({"PTXBOARD_SITE_URL": "https://x.example", "DEBUG": True}, "leaderboard.E002"),
        (
            {"PTXBOARD_SITE_URL": "https://x.example", "ALLOWED_HOSTS": ["localhost"]},
            "leaderboard.E003",
        ),
        ({"PTXBOARD_EMBEDDED": False}, "leaderboard.W001"),
        ({"PTXBOARD_ENDPOINT_HOSTS": ["http://x"]}, "leaderboard.E004"),
        ({"PTXBOARD_ENDPOINT_SECONDS": 3601}, "leaderboard.E006"),
        ({"PTXBOARD_SECRET_KEYS": ["secret"]}, "leaderboard.E005"),
        ({"PTXBOARD_EMBEDDED": False}, "leaderboard.W002"),
    ],
)
def test_settings_that_are_wrong_together_are_told_with_a_hint(settings, change, identifier):
    assert [*check_settings(None), *check_endpoint_settings(None)] == []
    for name, value in change.items():
        setattr(settings, name, value)
    messages = [*check_settings(None), *check_endpoint_settings(None)]
    found = {message.id: message for message in messages}
    assert found[identifier].hint


def test_the_openapi_document_is_whole_and_lists_each_address_once(db, client):
    answer = client.get("/api/schema/")
    assert answer.status_code == 200
    text = answer.content.decode()
    assert "/api/v1/submissions/:" in text
    assert "/api/v1/submissions:" not in text
    assert "Idempotency-Key" in text
    assert "/api/v1/worker/claim:" in text


def test_every_queue_of_a_target_is_declared_and_a_typo_makes_none():
    from webapp.celery import app

    names = {queue.name for queue in app.conf.task_queues}
    assert names == {"build", "io", "models", "gpu.h200", "gpu.h100", "gpu.b200", "gpu.host"}
    assert app.conf.task_create_missing_queues is False
    assert app.conf.task_acks_late is False
