from datetime import timedelta

from django.test import Client
from django.utils import timezone

from evaluator.records.verdicts import Stage, Verdict
from evaluator.targets import TARGETS
from leaderboard.views.presenters.words import STAGES, VERDICTS
from tests.leaderboard import factories
from tests.leaderboard.reading import Page


def test_it_explains_every_verdict_with_a_next_step(client: Client, db):
    page = Page(client.get("/rules/"))
    for verdict in Verdict:
        meaning = VERDICTS[verdict]
        row = f"{meaning.word} {verdict.value} {meaning.meaning} {meaning.next_step}"
        assert row in page.text
        assert verdict.value in page.attributes("id")


def test_it_explains_every_stage_and_what_is_not_covered(client: Client, db):
    page = Page(client.get("/rules/"))
    for number, stage in enumerate(Stage, 1):
        assert f"{number} {STAGES[stage][0]}" in page.text
        assert STAGES[stage][1] in page.text
    assert "What is not covered" in page.text


def test_it_lists_every_target(client: Client, db):
    page = Page(client.get("/targets/"))
    for target in TARGETS.values():
        assert f"{target.slug} {target.title}" in page.text
        assert target.note in page.text


def test_it_calls_a_silent_worker_offline(client: Client, db):
    now = timezone.now()
    machine = factories.environment().model_dump(mode="json")
    factories.worker("h200-a", ["gpu"], ["h200"], last_seen=now, environment=machine)
    factories.worker("h200-b", ["gpu"], ["h200"], last_seen=now - timedelta(minutes=2))
    text = Page(client.get("/workers/")).text
    assert "Idle h200-a gpu h200 NVIDIA H200 580.95.05 bubblewrap 0.11.0" in text
    assert "Offline h200-b gpu h200 — not known: this worker reported no GPU" in text


def test_it_says_how_to_start_the_first_worker(client: Client, db):
    text = Page(client.get("/workers/")).text
    assert "ptxboard worker --target h200 --site http://testserver" in text


def test_it_shows_the_api_with_this_sites_address(client: Client, db):
    page = Page(client.get("/api-guide/"))
    assert "curl http://testserver/api/v1/submissions/" in page.text


def test_it_states_the_limits_of_the_api(client: Client, db):
    text = Page(client.get("/api-guide/")).text
    assert "a body of 2097152 bytes, sent as it is" in text
    assert "sources of 1048576 bytes in 64 files, in UTF-8" in text
    assert "20 submissions waiting or running" in text
