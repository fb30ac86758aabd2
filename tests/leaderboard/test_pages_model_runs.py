"""Pages of model runs: list, run, trajectory, turn; what strangers and models write stays text."""

import csv
import io
import json

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

HOSTILE = "</pre></textarea><script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe 🚀"
PLAIN = factories.KERNEL
FASTER = PLAIN.replace("dim3(16, 16)", "dim3(32, 8)").replace("float sum", "double sum")


@pytest.fixture
def gemm(problems: dict[str, Problem]) -> Problem:
    return problems["gemm_n7168_k5120"]


@pytest.fixture
def run(gemm: Problem, alice: User) -> ModelRun:
    """Two variants by two trajectories: broken, slow, target met; the last has no turn."""
    made = run_factories.run(
        gemm, owner=alice, variants=("no-schedule", "multicast"), trajectories=2, turns=4
    )
    first = run_factories.trajectory(made)
    broken = run_factories.failed(made, "compilation", "COMPILE_ERROR", "error: no such name")
    run_factories.turn(first, kernel=PLAIN, results=broken, reasoning="Let me think.")
    run_factories.turn(first, kernel=PLAIN, excluded="the worker's disk was full")
    run_factories.turn(first, kernel=FASTER, speedup=0.75, feedback="Correct; now faster.")
    second = run_factories.trajectory(made, 2)
    run_factories.turn(second, extraction_state="TRUNCATED", finish_reason="length")
    third = run_factories.trajectory(made, 1, "multicast")
    run_factories.turn(third, kernel=FASTER, speedup=1.31)
    run_factories.end(third, "TARGET_MET", "speedup 1.310 in turn 1, target 1.2")
    return made


def tiles(page: Page) -> list[str]:
    return [attrs["title"] for _, attrs in page.tags if "tile" in attrs.get("class", "").split()]


def turn_of(run: ModelRun, number: int, *, excluded: bool = False) -> Turn:
    place = run_factories.trajectory(run)
    return place.turns.get(number=number, excluded=excluded)


def test_the_list_tells_plan_progress_and_best_speedup_in_two_queries(
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
        "1 target met",
    ):
        assert text in page.text, text
    assert "secret-path" not in page.html


def test_a_run_gives_fast_p_at_its_turn_limits_with_target_instructions_above(client: Client, run):
    """16 turns are planned; passed are 0.75 at turn 2 and 1.31 at turn 1, both with wgmma."""
    shared = run_factories.trajectory(run, 2, "multicast")
    plain = factories.stages(run.problem.record, speedup=1.1, work_share=None)
    run_factories.turn(shared, kernel=PLAIN, results=plain)
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
    turn = turn_of(run, 2)
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


def test_a_trajectory_lists_its_turns_and_three_exports(client: Client, run):
    place = run_factories.trajectory(run)
    page = Page(client.get(place.get_absolute_url()))
    for text in (
        "Trajectory no-schedule/1",
        "the worker's disk was full",
        speedup(0.75),
        "executed",
        "1 excluded as ours",
        "63 000",
    ):
        assert text in page.text, text
    for name in ("ptxboard", "mini-swe-agent", "flashinfer-trace"):
        link = f"/api/v1/trajectories/{place.pk}/export/?format={name}"
        assert link in page.links()
        assert client.get(link).status_code == 200, name


def test_a_first_turn_shows_the_prompt_answer_reasoning_code_and_verdict(client: Client, run):
    turn = turn_of(run, 1)
    page = Page(client.get(turn.get_absolute_url()))
    for text in (
        "Compile error",
        "system, ",
        "An mbarrier has a phase.",
        run_factories.TASK,
        "Let me think.",
        "error: no such name",
        "Keep optimizing.",
        turn.request_digest,
        turn.digest,
        "Computed anew just now, they agree with what is stored.",
    ):
        assert text in page.text, text
    assert turn.submission.get_absolute_url() in page.links()
    assert "Compared with" not in page.text


def test_a_later_turn_shows_what_was_added_and_what_changed_in_the_code(client: Client, run):
    turn, before = turn_of(run, 2), turn_of(run, 1)
    page = Page(client.get(turn.get_absolute_url()))
    prompt = page.text.partition("what was added since the turn before")[2]
    assert "An mbarrier has a phase." not in prompt
    assert run_factories.TASK not in prompt
    assert "Keep optimizing." in prompt
    assert "assistant" in prompt
    assert f"Compared with turn {before.number}" in page.text
    assert "3 lines added, 3 removed." in page.text
    assert "+ double sum = 0.0f;" in page.text
    assert "- float sum = 0.0f;" in page.text
    rels = {attrs["rel"]: attrs["href"] for tag, attrs in page.tags if attrs.get("rel") == "prev"}
    excluded = turn_of(run, 2, excluded=True)
    assert rels["prev"] in (before.get_absolute_url(), excluded.get_absolute_url())


def test_an_excluded_turn_says_whose_fault_it_was(client: Client, run):
    page = Page(client.get(turn_of(run, 2, excluded=True).get_absolute_url()))
    assert "Not the model's fault, not counted the worker's disk was full" in page.text


def test_a_turn_without_code_says_why(client: Client, run):
    turn = run_factories.trajectory(run, 2).turns.get()
    page = Page(client.get(turn.get_absolute_url()))
    assert "Truncated no fenced block holds code" in page.text or "Truncated" in page.text
    assert "No kernel was taken from this answer." in page.text
    assert "ended by length" in page.text


def test_a_turn_that_waits_for_its_verdict_is_a_page(client: Client, gemm, alice):
    made = run_factories.run(gemm, owner=alice)
    turn = run_factories.turn(run_factories.trajectory(made), kernel=PLAIN, results=[])
    Turn.objects.filter(pk=turn.pk).update(closed_at=None, digest="", feedback="", verdict="")
    page = Page(client.get(turn.get_absolute_url()))
    assert "It is written once the kernel has a verdict." in page.text
    assert len(page.attributes("hx-get")) == 1
    Trajectory.objects.update(state="EVALUATING")
    seen = tiles(Page(client.get(made.get_absolute_url())))
    assert seen[:2] == ["turn 1: Judging", "turn 2: planned"]


def test_a_kernel_of_a_model_leads_back_to_its_turns(client: Client, run):
    turn = turn_of(run, 2)
    page = Page(client.get(turn.submission.get_absolute_url()))
    assert "written in no-schedule/1, turn 2 of coder-32b on gemm_n7168_k5120" in page.text
    assert turn.get_absolute_url() in page.links()


def test_a_missing_parent_turn_is_told(client: Client, run):
    turn = turn_of(run, 2)
    Turn.objects.filter(pk=turn.pk).update(parent=None)
    page = Page(client.get(turn.get_absolute_url()))
    assert "The turn before this one is not recorded here" in page.text
    assert "An mbarrier has a phase." in page.text


def test_a_changed_record_is_told(client: Client, run):
    turn = turn_of(run, 1)
    Turn.objects.filter(pk=turn.pk).update(feedback="You did well.")
    page = Page(client.get(turn.get_absolute_url()))
    assert "something was changed afterwards" in page.text
    assert "they agree" not in page.text


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (b"not json", ["has a shape that this page cannot lay out"]),
        (b'{"messages": 7}', ["has a shape that this page cannot lay out"]),
        (b'{"instructions": "Be quick.", "input": "A gemm."}', ["Be quick.", "A gemm."]),
        (
            b'{"system": [{"type": "text", "text": "Part."}], "messages": [{"role": "user",'
            b' "content": [{"type": "text", "text": "One."}, {"type": "image"}]}]}',
            ["Part.", "One."],
        ),
        (b'{"messages": [null, {"content": null}]}', ["An empty message."]),
        (b"\xff\xfe", ["has a shape that this page cannot lay out"]),
    ],
)
def test_a_prompt_of_any_api_or_shape_is_a_page(client: Client, gemm, alice, body, texts):
    made = run_factories.run(gemm, owner=alice)
    turn = run_factories.turn(run_factories.trajectory(made), request=body)
    for address in (turn.get_absolute_url(), f"{turn.get_absolute_url()}prompt/"):
        page = Page(client.get(address))
        assert page.status == 200
        for text in texts:
            assert text in page.text, (address, text)
    whole = client.get(f"/turns/{turn.pk}/parts/request/")
    assert (whole.content, whole["Content-Type"]) == (body, "application/json")


def test_a_single_message_that_grew_shows_what_was_added_to_it(client: Client, gemm, alice):
    made = run_factories.run(gemm, owner=alice)
    place = run_factories.trajectory(made)
    for said in ("Write it.", "Write it.\n\n# Result of answer 1\n\nToo slow."):
        body = json.dumps({"messages": [{"role": "user", "content": said}]}).encode()
        turn = run_factories.turn(place, request=body)
    page = Page(client.get(turn.get_absolute_url()))
    assert "what was added to it" in page.text
    assert "# Result of answer 1 Too slow." in page.text
    assert "Write it." not in page.text


def test_ten_megabytes_are_shown_in_part_and_kept_whole(client: Client, gemm, alice):
    made = run_factories.run(gemm, owner=alice)
    text = "x" * (10 << 20)
    turn = run_factories.turn(run_factories.trajectory(made), answer=text, reasoning=text)
    answer = client.get(turn.get_absolute_url())
    assert len(answer.content) < 200_000
    assert "The first 40000 of 10485760 characters." in Page(answer).text
    assert client.get(f"/turns/{turn.pk}/parts/answer/").content == text.encode()


def test_parts_are_text_whatever_they_hold(client: Client, run):
    turn = turn_of(run, 1)
    Turn.objects.filter(pk=turn.pk).update(answer=HOSTILE)
    answer = client.get(f"/turns/{turn.pk}/parts/answer/")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.content.decode() == HOSTILE
    page = Page(client.get(f"/turns/{turn.pk}/parts/key/"))
    assert (page.status, "A turn has no part 'key'" in page.text) == (404, True)


@pytest.mark.parametrize(
    "address",
    [
        "/model-runs/8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11/",
        "/model-runs/8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11/progress/",
        "/trajectories/8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11/",
        "/turns/4711/",
        "/turns/99999999999999999999999/",
        "/turns/4711/prompt/",
    ],
)
def test_what_is_not_there_is_a_clear_404(client: Client, db, address: str):
    page = Page(client.get(address))
    assert page.status == 404
    assert "There is no " in page.text


@pytest.fixture
def hostile(gemm: Problem, alice: User) -> ModelRun:
    """Every text that a stranger or a model can write, at its worst."""
    made = run_factories.run(
        gemm,
        owner=alice,
        model=HOSTILE[:100],
        name=HOSTILE[:100],
        reason=HOSTILE,
        parameters={"extra_body": {HOSTILE: HOSTILE}},
        base_url="javascript:alert(1)",
    )
    place = run_factories.trajectory(made)
    failed = run_factories.failed(made, "compilation", "COMPILE_ERROR", HOSTILE)
    more = {"reasoning": HOSTILE, "finish_reason": "<b>stop", "reported_model": HOSTILE}
    source = f"int x; // {HOSTILE}\n"
    for _ in range(2):
        run_factories.turn(
            place, answer=HOSTILE, kernel=source, results=failed, feedback=HOSTILE, **more
        )
    body = {"messages": [{"role": HOSTILE, "content": HOSTILE}], HOSTILE: HOSTILE}
    request = json.dumps(body).encode()
    more = {"request": request, "extraction_message": HOSTILE, "request_id": HOSTILE}
    run_factories.turn(place, answer=HOSTILE, excluded=HOSTILE, **more)
    Trajectory.objects.update(reason=HOSTILE)
    return made


def addresses(run: ModelRun) -> list[str]:
    place = run.trajectories.get()
    turns = [one.get_absolute_url() for one in place.turns.all()]
    return [
        "/model-runs/",
        "/model-runs/mine/",
        "/model-runs/submit/",
        run.get_absolute_url(),
        f"{run.get_absolute_url()}progress/",
        place.get_absolute_url(),
        *turns,
        *(f"{one}prompt/" for one in turns),
    ]


def test_hostile_text_stays_text_on_every_page(client: Client, hostile, alice):
    client.force_login(alice)
    for address in addresses(hostile):
        page = Page(client.get(address))
        assert page.status in (200, 286), address
        names = {tag for tag, _ in page.tags}
        assert "img" not in names, address
        assert "style" not in names, address
        for tag, attrs in page.tags:
            assert not any(name.startswith("on") or name == "style" for name in attrs), address
            assert tag != "script" or attrs.get("src", "").startswith("/static/"), address
            for name in ("src", "href", "action", "hx-get", "hx-post"):
                assert attrs.get(name, "/")[0] in "/?#", (address, attrs)
        assert "\u202e" not in page.html, address


def test_hostile_text_is_quoted_to_the_letter(client: Client, hostile):
    shown = HOSTILE.replace("\u202e", "[U+202E]")
    page = Page(client.get(hostile.trajectories.get().turns.first().get_absolute_url()))
    assert page.text.count(shown) >= 4


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
