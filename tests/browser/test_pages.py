"""The pages in Chromium: both themes, desktop and phone, with and without JavaScript."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from evaluator.records.verdicts import Stage, Verdict
from leaderboard.models import Attempt, Job, Problem, Submission
from tests.browser.conftest import DESKTOP, PHONE
from tests.leaderboard import factories

pytestmark = [pytest.mark.django_db(transaction=True)]

BOARD = "/boards/h200/gemm_n7168_k5120/"


@pytest.fixture
def gemm(transactional_db, problems: dict[str, Problem]) -> Problem:
    return problems["gemm_n7168_k5120"]


@pytest.fixture
def passed(gemm: Problem) -> Submission:
    one = factories.submission(by=factories.entrant("Bob"), problem=gemm, name="wgmma")
    return factories.evaluated(one, factories.stages(gemm.record, speedup=0.94))


@pytest.fixture
def refused(gemm: Problem) -> Submission:
    one = factories.submission(by=factories.entrant("Carol"), problem=gemm, name="no fence")
    message = 'kernel.cu(14): error: identifier "wgmma_fence" is undefined'
    results = factories.failing(
        factories.stages(gemm.record), Stage.COMPILATION, Verdict.COMPILE_ERROR, message
    )
    return factories.evaluated(one, results)


def sign_in(tab, path: str) -> None:
    page = tab.go(path)
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("correct horse battery")
    page.locator("main").get_by_role("button", name="Sign in").click()


def violations(page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_it_takes_a_kernel_from_sign_in_to_the_queue(visit, gemm, alice, scripts: bool):
    tab = visit(scripts=scripts)
    sign_in(tab, "/submit/?problem=gemm_n7168_k5120&target=h200")
    page = tab.page
    page.get_by_label("Name", exact=True).fill("from a browser")
    page.get_by_label("Source").fill(factories.KERNEL)
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.locator("h1")).to_have_text("from a browser")
    expect(page.locator("#progress")).to_contain_text("no build worker is online")
    one = Submission.objects.get()
    assert one.candidate.sources[0].content == factories.KERNEL
    assert tab.errors == []


def test_it_follows_a_submission_to_its_end_without_a_reload(visit, gemm, alice_entrant):
    one = factories.submission(by=alice_entrant, problem=gemm, name="live")
    factories.queued(one)
    tab = visit()
    page = tab.go(one.get_absolute_url())
    expect(page.get_by_role("status").first).to_contain_text("Queued")
    page.evaluate("window.sameDocument = true")
    Attempt.objects.update(state="FINISHED")
    Job.objects.update(state="DONE")
    Submission.objects.update(state="DONE", verdict="COMPILE_ERROR", message="no such header")
    expect(page.locator("#progress")).to_contain_text("Compile error", timeout=10_000)
    expect(page.locator("#progress")).to_contain_text("It has ended.")
    assert page.evaluate("window.sameDocument") is True
    assert page.locator("[hx-get]").count() == 0
    assert tab.errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_any_page(visit, alice, passed, refused, theme, viewport):
    tab = visit(theme=theme, viewport=viewport)
    sign_in(tab, "/sign-in/")
    paths = [
        "/",
        BOARD,
        "/boards/b200/gemm_n7168_k5120/",
        "/problems/",
        "/problems/gemm_n7168_k5120/",
        "/targets/",
        "/rules/",
        "/workers/",
        "/api-guide/",
        "/submissions/",
        "/submit/",
        "/account/",
        passed.get_absolute_url(),
        refused.get_absolute_url(),
    ]
    for path in paths:
        page = tab.go(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert violations(page) == [], path
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= viewport["width"], f"{path} is {width} wide"
    assert tab.errors == []


def test_it_draws_the_samples_under_the_strict_policy(visit, passed):
    tab = visit()
    page = tab.go(passed.get_absolute_url())
    expect(page.locator("#stage-timing")).to_be_visible()
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    assert page.locator(".plot .scatterlayer .point").count() == 300
    assert page.locator(".plot svg.still").count() == 0
    assert tab.errors == []


def test_it_draws_the_same_samples_without_scripts(visit, passed):
    page = visit(scripts=False).go(passed.get_absolute_url())
    assert page.locator("svg.still circle").count() == 150
    expect(page.locator("svg.still")).to_be_visible()


def test_it_keeps_the_chosen_theme_over_pages(visit, passed):
    tab = visit(theme="light")
    page = tab.go(BOARD)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Use the dark theme").click()
    dark = page.evaluate(paper)
    assert dark != light
    page.get_by_role("link", name="wgmma").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(paper) == dark
    expect(page.get_by_role("button", name="Use the light theme")).to_be_visible()
    assert tab.errors == []


def test_it_copies_a_prototype_to_the_letter(visit, gemm):
    tab = visit()
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.go("/problems/gemm_n7168_k5120/")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("#include <cuda_bf16.h>\n")
    assert 'extern "C" void run(' in copied


def test_it_reaches_the_content_by_keyboard_first(visit, passed):
    page = visit().go(BOARD)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))
    assert page.evaluate("document.activeElement.id") == "main"


def test_it_lets_the_board_scroll_inside_its_own_region_on_a_phone(visit, passed):
    page = visit(viewport=PHONE).go(BOARD)
    region = page.get_by_role("region", name="Ranking", exact=True)
    wide, narrow = region.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert wide > narrow
    region.focus()
    page.keyboard.press("End")
    assert region.get_attribute("tabindex") == "0"


def test_it_runs_nothing_of_what_strangers_wrote(visit, gemm):
    by = factories.entrant('"><svg/onload=alert(2)>')
    one = factories.submission(by=by, problem=gemm, name="<img src=x onerror=alert(1)>")
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.9))
    tab = visit()
    tab.page.on("dialog", lambda dialog: tab.errors.append(dialog.message))
    for path in ("/", BOARD, "/submissions/", one.get_absolute_url()):
        page = tab.go(path)
        expect(page.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
    assert tab.errors == []
