"""Pages of model runs: the list and the run with its grid, its numbers and its buttons."""

import csv
import io

import pytest
from django.contrib.auth.models import User
from django.test import Client

from evaluator.agent.extraction import ExtractionState
from evaluator.records.verdicts import Verdict
from leaderboard.models import ModelRun, Problem, Trajectory, Turn
from leaderboard.templatetags.units import TIMES, speedup
from leaderboard.views.presenters.run_words import (
    ENDINGS,
    EXTRACTIONS,
    RUN_STATES,
    SHORT_EXTRACTIONS,
    SHORT_VERDICTS,
    TRAJECTORY_STATES,
)
from tests.leaderboard import factories, run_factories
from tests.leaderboard.reading import Page


@pytest.fixture
def gemm(problems: dict[str, Problem]) -> Problem:
    return problems["gemm_n7168_k5120"]


@pytest.fixture
def run(gemm: Problem, alice: User) -> ModelRun:
    return run_factories.worked(gemm, alice)


def tiles(page: Page) -> list[str]:
    return [attrs["title"] for _, attrs in page.tags if "tile" in attrs.get("class", "").split()]


def test_the_list_tells_plan_progress_and_best_speedup_in_one_query(
    client: Client, run, django_assert_num_queries
):
    with django_assert_num_queries(1):
        page = Page(client.get("/model-runs/"))
    assert "coder-32b on gemm_n7168_k5120" in page.text
    assert f"2{TIMES}2{TIMES}4" in page.text
    assert "4 of at most 16" in page.text
    assert speedup(1.31) in page.text
    assert f"/model-runs/{run.pk}/" in page.links()


def test_an_empty_list_leads_to_the_form(client: Client, db):
    page = Page(client.get("/model-runs/"))
    assert "No model has been submitted yet." in page.text
    assert "/model-runs/submit/" in page.links()


def test_a_list_can_be_filtered_by_state_and_target(client: Client, run):
    assert "Nothing matches." in Page(client.get("/model-runs/?state=DONE")).text
    assert "coder-32b" in Page(client.get("/model-runs/?state=RUNNING&target=h200")).text
    page = Page(client.get("/model-runs/?state=BUSY"))
    assert (page.status, "There is no state 'BUSY'" in page.text) == (404, True)


def test_mine_shows_only_mine(client: Client, run, alice, bob):
    client.force_login(bob)
    assert "You have not submitted a model yet." in Page(client.get("/model-runs/mine/")).text
    client.force_login(alice)
    assert "coder-32b" in Page(client.get("/model-runs/mine/")).text


def test_a_run_shows_a_tile_for_every_planned_turn(client: Client, run):
    page = Page(client.get(run.get_absolute_url()))
    first = "turn 1: Compile error"
    passed = "turn 2: Passed, 0.750 times the baseline's speed, target instructions executed"
    excluded = "turn 2: Excluded"
    assert tiles(page)[:6] == [first, passed, excluded, "turn 3: Waiting", "turn 4: planned",
                               "turn 1: Truncated"]  # fmt: skip
    met = "turn 1: Passed, 1.310 times the baseline's speed, target instructions executed"
    not_taken = "turn 2: not taken, the trajectory ended before: Target met"
    assert met in tiles(page)
    assert not_taken in tiles(page)
    marked = [attrs for _, attrs in page.tags if "met" in attrs.get("class", "").split()]
    assert [attrs["title"] for attrs in marked] == [met]


def test_a_run_shows_its_settings_and_only_the_host_of_its_endpoint(client: Client, run):
    page = Page(client.get(run.get_absolute_url()))
    for text in (
        "models.example.org",
        "hopper 1.0, level schedule",
        factories.SHA,
        run.digest,
        f"2 variants{TIMES}2 trajectories{TIMES}4 turns, 4 at once",
        "4 count, 1 excluded as ours",
        "4 trajectories: waiting 3, target met 1.",
        "submitted by alice",
    ):
        assert text in page.text, text
    assert "secret-path" not in page.html


def test_a_run_says_who_measured_it_and_where(client: Client, run):
    url = run.get_absolute_url()
    ModelRun.objects.filter(pk=run.pk).update(endpoint_digest=factories.SHA)
    page = Page(client.get(url))
    assert "on NVIDIA H200; recorded on another site" in page.text
    assert "alice" not in page.text
    ModelRun.objects.filter(pk=run.pk).update(endpoint_digest="", trust="self-reported")
    page = Page(client.get(url))
    assert "self-reported" in page.text
    assert "reported by alice" in page.text


def test_a_run_gives_fast_p_at_its_turn_limits_with_target_instructions_above(client: Client, run):
    """16 turns are planned; passed are 0.75 at turn 2 and 1.31 at turn 1, both with wgmma."""
    shared = run_factories.trajectory(run, 2, "multicast")
    plain = factories.stages(run.problem.record, speedup=1.1, work_share=None)
    run_factories.turn(shared, kernel=factories.KERNEL, results=plain)
    page, best = Page(client.get(run.get_absolute_url())), f" {speedup(1.31)}"
    scores = page.text.partition("Measure")[2]
    assert "of the planned turns, here 16" in page.text
    assert "Instructions ≤ 1 turn ≤ 4 turns" in scores
    assert "Fast_0 target 25.0 % 12.5 % any 50.0 % 18.8 %" in scores
    assert "Fast_0.8 target 25.0 % 6.2 % any 50.0 % 12.5 %" in scores
    assert "Fast_1.2 target 25.0 % 6.2 % any 25.0 % 6.2 %" in scores
    assert f"Best target{best * 2} any{best * 2}" in scores


def test_a_run_costs_the_same_queries_however_many_turns_it_has(
    client: Client, run, django_assert_max_num_queries
):
    with django_assert_max_num_queries(8):
        client.get(run.get_absolute_url())
    place = run_factories.trajectory(run, 2)
    for _ in range(3):
        run_factories.turn(place)
    with django_assert_max_num_queries(8):
        client.get(run.get_absolute_url())


def test_a_live_run_asks_for_its_fragment_until_it_ends(client: Client, run):
    page = Page(client.get(run.get_absolute_url()))
    assert page.attributes("hx-get") == [f"/model-runs/{run.pk}/progress/"]
    fragment = client.get(f"/model-runs/{run.pk}/progress/")
    assert fragment.status_code == 200
    run_factories.finish(run)
    ended = client.get(f"/model-runs/{run.pk}/progress/")
    assert ended.status_code == 286
    assert Page(ended).attributes("hx-get") == []
    assert "It has ended." in Page(ended).text


def test_only_its_owner_and_staff_see_the_buttons(client: Client, run, alice, bob, carol):
    address = f"/model-runs/{run.pk}/pause/"
    for user, shown in ((alice, True), (bob, False), (carol, True)):
        client.force_login(user)
        actions = Page(client.get(run.get_absolute_url())).attributes("action")
        assert (address in actions) is shown


def test_an_owner_pauses_resumes_and_cancels(client: Client, run, alice):
    client.force_login(alice)
    page = Page(client.post(f"/model-runs/{run.pk}/pause/", follow=True))
    assert "Paused by alice." in page.text
    assert f"/model-runs/{run.pk}/resume/" in page.attributes("action")
    client.post(f"/model-runs/{run.pk}/resume/", {"key": "sk-another-1234567"})
    run.refresh_from_db()
    assert run.state == "RUNNING"
    assert "sk-another" not in run.key_ciphertext
    assert run.key_ciphertext
    client.post(f"/model-runs/{run.pk}/cancel/")
    run.refresh_from_db()
    assert (run.state, run.key_ciphertext) == ("CANCELLED", "")
    page = Page(client.post(f"/model-runs/{run.pk}/pause/", follow=True))
    assert "the run is CANCELLED, which is its end" in page.text


def test_a_stranger_who_posts_is_told_so_and_changes_nothing(client: Client, run, bob):
    client.force_login(bob)
    for verb in ("pause", "resume", "cancel"):
        page = Page(client.post(f"/model-runs/{run.pk}/{verb}/", follow=True))
        assert f"only alice or staff can {verb} this model run" in page.text
    run.refresh_from_db()
    assert run.state == "RUNNING"
    assert client.get(f"/model-runs/{run.pk}/cancel/").status_code == 405


def test_an_owner_pauses_and_cancels_one_trajectory(client: Client, run, alice):
    client.force_login(alice)
    place = run_factories.trajectory(run, 2)
    page = Page(client.post(f"/trajectories/{place.pk}/pause/", follow=True))
    assert "Paused" in page.text
    client.post(f"/trajectories/{place.pk}/resume/")
    place.refresh_from_db()
    assert place.held is False
    page = Page(client.post(f"/trajectories/{place.pk}/cancel/", follow=True))
    assert "Cancelled by alice." in page.text


def test_a_run_without_trajectories_and_one_without_turns_are_pages(client: Client, gemm, alice):
    bare = run_factories.run(gemm, owner=alice, variants=())
    page = Page(client.get(bare.get_absolute_url()))
    assert "This run has no trajectories." in page.text
    assert "No turn is planned that counts" in page.text
    fresh = run_factories.run(gemm, owner=alice, turns=1)
    page = Page(client.get(fresh.get_absolute_url()))
    assert tiles(page) == ["turn 1: Waiting"]
    assert "0.0 %" in page.text
    place = run_factories.trajectory(fresh)
    assert "No turn was taken yet." in Page(client.get(place.get_absolute_url())).text


def test_the_csv_has_every_turn_with_full_precision(client: Client, run):
    turn = run_factories.turn_of(run, 2)
    answer = client.get(f"/model-runs/{run.pk}/turns.csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert len(rows) == 5
    passed = next(row for row in rows if row["speedup"] == "0.75")
    assert (passed["variant"], passed["trajectory"], passed["turn"]) == ("no-schedule", "1", "2")
    assert passed["digest"] == turn.digest
    assert [row["excluded"] for row in rows].count("True") == 1


def test_a_spreadsheet_runs_nothing_of_a_reason(client: Client, run):
    Turn.objects.filter(excluded=True).update(excluded_reason="=HYPERLINK(1)")
    text = client.get(f"/model-runs/{run.pk}/turns.csv").content.decode()
    assert "'=HYPERLINK(1)" in text


def test_every_state_verdict_and_ending_has_its_word():
    assert set(SHORT_VERDICTS) == set(Verdict)
    assert set(EXTRACTIONS) == set(SHORT_EXTRACTIONS) == set(ExtractionState)
    assert set(RUN_STATES) == set(ModelRun.State)
    assert set(ENDINGS) == set(Trajectory.Ending)
    assert set(TRAJECTORY_STATES) == set(Trajectory.OPEN_STATES)


def test_the_pages_link_to_each_other(client: Client, run, gemm):
    assert "/model-runs/" in Page(client.get("/")).links()
    page = Page(client.get(run.get_absolute_url()))
    place = run_factories.trajectory(run)
    assert place.get_absolute_url() in page.links()
    assert f"/boards/h200/{gemm.name}/" in page.links()
    assert f"/model-runs/{run.pk}/turns.csv" in page.links()
    assert f"/api/v1/model-runs/{run.pk}/" in page.links()
