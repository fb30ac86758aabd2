"""Commands of the operator."""

import re

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluator.problems import load_problems
from leaderboard.models import ApiToken, AuditEntry, Problem
from leaderboard.services.audit import audit_append, first_broken_entry
from leaderboard.services.tokens import token_find


def test_the_catalogue_is_stored_whole_and_in_order(db):
    call_command("sync_catalogue", verbosity=0)
    call_command("sync_catalogue", verbosity=0)
    assert [row.name for row in Problem.objects.all()] == list(load_problems())
    for row in Problem.objects.all():
        assert row.record == load_problems()[row.name]
        assert row.record.digest == row.digest


def test_a_worker_token_is_printed_once(db, capsys):
    call_command("create_token", worker="lab-1", lane="build")
    secret = capsys.readouterr().out.strip()
    assert re.fullmatch(r"ptxw_\S{40,}", secret)
    token = token_find(secret=secret)
    assert (token.scope, token.worker_name) == ("worker", "lab-1")
    assert (token.lanes, token.targets) == (["build"], [])
    assert AuditEntry.objects.get().subject == secret[:10]


def test_a_worker_token_may_serve_targets_and_builds(db, capsys):
    words = ["--worker", "rack", "--lane", "build", "--target", "h200", "host"]
    call_command("create_token", *words)
    token = token_find(secret=capsys.readouterr().out.strip())
    assert (token.lanes, token.targets) == (["build", "gpu"], ["h200", "host"])
    assert token.scope_words == "build and run on h200, host"


def test_a_worker_token_for_nothing_is_refused_in_words(db):
    with pytest.raises(
        CommandError, match=r"nothing was given\. Add --lane build or --target NAME"
    ):
        call_command("create_token", worker="lab-1")
    assert ApiToken.objects.count() == 0


def test_a_user_token_takes_no_lane(alice):
    with pytest.raises(CommandError, match="a user only submits"):
        call_command("create_token", user="alice", lane="build")


def test_a_user_token_may_expire(alice, capsys):
    call_command("create_token", user="alice", days=7)
    token = token_find(secret=capsys.readouterr().out.strip())
    assert token.user == alice
    assert 6 < (token.expires_at - token.created_at).days + 1 <= 8


def test_a_token_for_nobody_is_refused(db):
    with pytest.raises(CommandError, match="no user 'zoe'"):
        call_command("create_token", user="zoe")


def test_the_demo_user_keeps_password_and_token(db, tmp_path):
    options = {
        "token_file": str(tmp_path / "token"),
        "password_file": str(tmp_path / "password"),
        "verbosity": 0,
    }
    call_command("demo_user", **options)
    first = [(tmp_path / name).read_text() for name in ("token", "password")]
    call_command("demo_user", **options)
    assert [(tmp_path / name).read_text() for name in ("token", "password")] == first
    assert User.objects.get(username="demo").check_password(first[1].strip())
    assert token_find(secret=first[0].strip()).user.username == "demo"
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0
    ApiToken.objects.all().delete()
    call_command("demo_user", **options)
    assert token_find(secret=(tmp_path / "token").read_text().strip()) is not None


def test_a_demo_password_may_be_chosen(db, tmp_path, monkeypatch):
    monkeypatch.setenv("PTXBOARD_DEMO_PASSWORD", "chosen for this test")
    call_command(
        "demo_user", token_file=str(tmp_path / "t"), password_file=str(tmp_path / "p"), verbosity=0
    )
    assert User.objects.get(username="demo").check_password("chosen for this test")


def test_the_audit_chain_holds_and_shows_the_entry_that_was_changed(db):
    for number in range(4):
        audit_append(actor="carol", action="tested", subject=number, detail={"n": number})
    assert first_broken_entry(AuditEntry.objects.all()) is None
    AuditEntry.objects.filter(sequence=2).update(detail_json='{"n":9}')
    assert first_broken_entry(AuditEntry.objects.all()).sequence == 2
    AuditEntry.objects.filter(sequence=2).delete()
    assert first_broken_entry(AuditEntry.objects.all()).sequence == 3
