"""Boards of models, comparisons, entrants and docs in Chromium."""

import pytest
from playwright.sync_api import expect

from leaderboard.models import Entrant, ModelRun, Problem, Submission
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.test_pages import sign_in, violations
from tests.leaderboard import factories
from tests.leaderboard.boards_of_models import stand
from tests.leaderboard.test_pages_listings import HOSTILE as HOSTILE_LISTING
from tests.leaderboard.test_pages_listings import with_listing

pytestmark = [pytest.mark.django_db(transaction=True)]

GEMM, FORWARD = "gemm_n7168_k5120", "mha_with_lse_d128"
BOARD = "/boards/h200/"
HOSTILE = "</title><script>alert(1)</script>\u202e"


@pytest.fixture
def runs(transactional_db, problems: dict[str, Problem], alice) -> list[ModelRun]:
    return [
        stand(problems[GEMM], alice, "opus", None, 0.95, 0.92),
        stand(problems[FORWARD], alice, "opus", 1.0),
        stand(problems[GEMM], alice, "haiku", 0.7, 0.7, 0.7, 0.7),
        stand(problems[GEMM], alice, "haiku", None, 0.6, level="parameters"),
        stand(problems[GEMM], alice, HOSTILE, 0.5),
    ]


@pytest.fixture
def kernels(transactional_db, problems: dict[str, Problem]) -> list[Submission]:
    gemm, bob = problems[GEMM], factories.entrant(HOSTILE)
    found = []
    for name, speedup in (("wgmma", 0.94), ("wgmma, again", 0.9401), (HOSTILE, 0.5)):
        one = factories.submission(by=bob, problem=gemm, name=name)
        found.append(factories.evaluated(one, factories.stages(gemm.record, speedup=speedup)))
    return found


@pytest.fixture
def listed(transactional_db, problems: dict[str, Problem]) -> Submission:
    return with_listing(problems[GEMM], HOSTILE_LISTING)


def comparison(kernels: list[Submission]) -> str:
    return "/compare/?" + "&".join(
        f"{letter}={one.pk}" for letter, one in zip("abc", kernels, strict=True)
    )


def models() -> str:
    slugs = list(Entrant.objects.filter(kind="model").values_list("slug", flat=True))
    return "/compare/?" + "&".join(
        f"{letter}={slug}" for letter, slug in zip("abc", slugs, strict=False)
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_and_nothing_runs_on_any_page(
    visit, runs, kernels, listed, theme, viewport
):
    tab = visit(theme=theme, viewport=viewport)
    tab.page.on("dialog", lambda dialog: tab.errors.append(dialog.message))
    sign_in(tab, "/sign-in/")
    haiku = Entrant.objects.get(display_name="haiku")
    paths = [
        BOARD,
        f"{BOARD}?trust=all&p=0.5",
        "/boards/b200/",
        f"{BOARD}{GEMM}/",
        "/boards/",
        "/compare/",
        comparison(kernels),
        f"{listed.get_absolute_url()}machine-code/",
        models(),
        f"/entrants/{haiku.slug}/",
        f"/entrants/{kernels[0].entrant.slug}/",
        "/docs/",
        "/docs/numbers/",
        "/docs/limits/",
        "/docs/undetected/",
        "/docs/reproduce/",
    ]
    for path in paths:
        page = tab.go(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert violations(page) == [], path
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= viewport["width"], f"{path} is {width} wide"
    assert tab.errors == []


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_pinned_p_ranks_the_table_anew(visit, runs, scripts: bool):
    tab = visit(scripts=scripts)
    page = tab.go(BOARD)
    names = page.locator("#ranking ~ form tbody tr th a")
    expect(names.first).to_have_text("opus")
    page.locator(".pins").get_by_role("link", name="0", exact=True).click()
    expect(names.first).to_have_text("haiku")
    assert page.url.endswith("?p=0")
    page.get_by_role("textbox", name="Pinned p").fill("0.93")
    page.get_by_role("button", name="Show").click()
    expect(names.first).to_have_text("opus")
    assert "p=0.93" in page.url
    assert tab.errors == []


def test_filters_stand_in_the_address_and_come_back_in_the_form(visit, runs):
    tab = visit(scripts=False)
    page = tab.go(BOARD)
    page.get_by_label("Knowledge").select_option("parameters")
    page.get_by_label("complete only").check()
    page.get_by_role("button", name="Show").click()
    assert "level=parameters" in page.url
    assert "complete=1" in page.url
    expect(page.get_by_label("Knowledge")).to_have_value("parameters")
    expect(page.get_by_label("complete only")).to_be_checked()
    expect(page.get_by_role("region", name="Turn correctness rate")).to_contain_text("haiku")


def test_curves_can_be_chosen_without_scripts(visit, runs):
    page = visit(scripts=False).go(BOARD)
    figure = page.locator(f"#fast-p-{GEMM} figure").last
    before = figure.locator(".curve .line").count()
    page.get_by_text("Choose other curves").click()
    page.locator(".choices input").first.uncheck()
    page.get_by_role("button", name="Draw these").click()
    assert page.locator(f"#fast-p-{GEMM} figure").last.locator(".line").count() == before - 1


def test_curves_are_drawn_with_a_colour_and_a_dash_of_their_own(visit, runs):
    page = visit(scripts=False).go(BOARD)
    lines = page.locator(f"#fast-p-{GEMM} figure").last.locator(".curve .line")
    looks = lines.evaluate_all(
        "all => all.map(e => getComputedStyle(e).stroke + getComputedStyle(e).strokeDasharray)"
    )
    assert len(looks) == len(set(looks)) == 4


def test_pointing_at_a_model_dims_the_other_curves(visit, runs):
    page = visit(scripts=False).go(BOARD)
    panel = page.locator(f"#fast-p-{GEMM}")
    panel.locator("tbody tr").first.hover()
    faint = (
        panel.locator("figure")
        .last.locator(".curve")
        .evaluate_all("all => all.filter(e => getComputedStyle(e).opacity < 1).length")
    )
    assert faint == 3


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_rows_are_ticked_and_compared(visit, kernels, scripts: bool):
    tab = visit(scripts=scripts)
    page = tab.go(f"{BOARD}{GEMM}/")
    page.get_by_label("Compare wgmma", exact=True).check()
    page.get_by_label("Compare wgmma, again").check()
    page.get_by_role("button", name="Compare those ticked").click()
    expect(page.locator("h1")).to_have_text("2 kernels side by side")
    expect(page.get_by_role("region", name="What was found")).to_contain_text("overlap")
    assert page.locator(".fine-ticks").count() == 2
    assert tab.errors == []


def test_models_are_ticked_and_compared(visit, runs):
    page = visit(scripts=False).go(f"{BOARD}?level=schedule")
    for name in ("opus", "haiku"):
        page.get_by_label(f"Compare {name}, cuda, schedule pack").check()
    page.get_by_role("button", name="Compare those ticked").click()
    expect(page.locator("h1")).to_have_text("Models side by side on the NVIDIA H200")


def test_the_heading_of_a_long_board_stays_in_sight(visit, runs):
    page = visit(scripts=False).go(BOARD)
    head = page.locator("table.triplets thead th").first
    page.evaluate("document.querySelector('table.triplets tbody tr:last-child').scrollIntoView()")
    top = head.bounding_box()["y"]
    assert 0 <= top < 200


def test_a_phone_scrolls_the_table_and_keeps_the_names(visit, runs):
    page = visit(viewport=PHONE, scripts=False).go(BOARD)
    region = page.get_by_role("region", name="Turn correctness rate")
    wide, narrow = region.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert wide > narrow
    region.evaluate("e => e.scrollLeft = 9999")
    name = region.locator("tbody th").first.bounding_box()
    assert 0 <= name["x"] < 120


def test_a_row_is_found_by_its_address(visit, runs):
    page = visit(scripts=False).go(BOARD)
    row = page.locator("tr[id^=row-]").nth(1).get_attribute("id")
    page.goto(f"{page.url}#{row}")
    color = page.locator(f"#{row} > td").first.evaluate("e => getComputedStyle(e).backgroundColor")
    plain = page.locator("tr[id^=row-] > td").first.evaluate(
        "e => getComputedStyle(e).backgroundColor"
    )
    assert color != plain


def test_the_flows_of_turns_name_their_states(visit, runs):
    haiku = Entrant.objects.get(display_name="haiku")
    page = visit(scripts=False).go(f"/entrants/{haiku.slug}/")
    expect(page.locator("svg.flows")).to_be_visible()
    expect(page.locator("svg.flows")).to_contain_text("turn 4")
    assert page.locator("svg.flows .ribbon").count() > 0


def test_nothing_but_paper_is_printed(visit, runs):
    page = visit(theme="dark", scripts=False).go(BOARD)
    page.emulate_media(media="print")
    assert page.locator(".board-filters").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(21, 25, 29)"
