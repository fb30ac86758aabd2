"""Pages of trajectories and turns; what strangers and models write stays text."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from leaderboard.models import ModelRun, Problem, Trajectory, Turn
from leaderboard.templatetags.units import speedup
from tests.leaderboard import factories, run_factories
from tests.leaderboard.reading import Page

HOSTILE = "</pre></textarea><script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe 🚀"


@pytest.fixture
def gemm(problems: dict[str, Problem]) -> Problem:
    return problems["gemm_n7168_k5120"]


@pytest.fixture
def run(gemm: Problem, alice: User) -> ModelRun:
    return run_factories.worked(gemm, alice)


def tiles(page: Page) -> list[str]:
    return [attrs["title"] for _, attrs in page.tags if "tile" in attrs.get("class", "").split()]


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
    turn = run_factories.turn_of(run, 1)
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
    evidence = turn.submission.get_absolute_url()
    assert {evidence, f"{evidence}#stage-compilation"} <= set(page.links())
    assert "Compared with" not in page.text


def test_a_later_turn_shows_what_was_added_and_what_changed_in_the_code(client: Client, run):
    turn, before = run_factories.turn_of(run, 2), run_factories.turn_of(run, 1)
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
    excluded = run_factories.turn_of(run, 2, excluded=True)
    assert rels["prev"] in (before.get_absolute_url(), excluded.get_absolute_url())


def test_an_excluded_turn_says_whose_fault_it_was(client: Client, run):
    page = Page(client.get(run_factories.turn_of(run, 2, excluded=True).get_absolute_url()))
    assert "Not the model's fault, not counted the worker's disk was full" in page.text


def test_a_turn_without_code_says_why(client: Client, run):
    turn = run_factories.trajectory(run, 2).turns.get()
    page = Page(client.get(turn.get_absolute_url()))
    assert "Truncated no fenced block holds code" in page.text or "Truncated" in page.text
    assert "No kernel was taken from this answer." in page.text
    assert "ended by length" in page.text


def test_a_turn_that_waits_for_its_verdict_is_a_page(client: Client, gemm, alice):
    made = run_factories.run(gemm, owner=alice)
    turn = run_factories.turn(run_factories.trajectory(made), kernel=factories.KERNEL, results=[])
    Turn.objects.filter(pk=turn.pk).update(closed_at=None, digest="", feedback="", verdict="")
    page = Page(client.get(turn.get_absolute_url()))
    assert "It is written once the kernel has a verdict." in page.text
    assert len(page.attributes("hx-get")) == 1
    Trajectory.objects.update(state="EVALUATING")
    seen = tiles(Page(client.get(made.get_absolute_url())))
    assert seen[:2] == ["turn 1: Judging", "turn 2: planned"]


def test_a_kernel_of_a_model_leads_back_to_its_turns(client: Client, run):
    turn = run_factories.turn_of(run, 2)
    page = Page(client.get(turn.submission.get_absolute_url()))
    assert "written in no-schedule/1, turn 2 of coder-32b on gemm_n7168_k5120" in page.text
    assert turn.get_absolute_url() in page.links()


def test_a_missing_parent_turn_is_told(client: Client, run):
    turn = run_factories.turn_of(run, 2)
    Turn.objects.filter(pk=turn.pk).update(parent=None)
    page = Page(client.get(turn.get_absolute_url()))
    assert "The turn before this one is not recorded here" in page.text
    assert "An mbarrier has a phase." in page.text


def test_a_changed_record_is_told(client: Client, run):
    turn = run_factories.turn_of(run, 1)
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
    turn = run_factories.turn_of(run, 1)
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
