"""Pages of model runs in Chromium: themes and widths, the live grid, keys, the form's buttons."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from examples.scripted_endpoint import ScriptedServer
from leaderboard.models import ModelRun, Problem
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.test_pages import sign_in, violations
from tests.leaderboard import factories, run_factories

pytestmark = [pytest.mark.django_db(transaction=True)]

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def run(transactional_db, problems: dict[str, Problem], alice) -> ModelRun:
    made = run_factories.run(
        problems["gemm_n7168_k5120"], owner=alice, variants=("no-schedule", "multicast"), turns=8
    )
    place = run_factories.trajectory(made)
    broken = run_factories.failed(made, "compilation", "COMPILE_ERROR", HOSTILE)
    more = {"reasoning": HOSTILE, "kernel": factories.KERNEL}
    run_factories.turn(place, answer=HOSTILE, results=broken, **more)
    run_factories.turn(place, excluded="the worker's disk was full")
    run_factories.turn(place, speedup=1.31, feedback=HOSTILE, **more)
    return made


@pytest.fixture
def endpoint(tmp_path: Path, settings) -> Iterator[str]:
    settings.PTXBOARD_ENDPOINT_HOSTS = ["127.0.0.1"]
    folder = tmp_path / "answers" / "default"
    folder.mkdir(parents=True)
    (folder / "last.md").write_text("ready")
    with ScriptedServer(folder.parent) as server:
        server.start()
        yield server.url


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_and_nothing_runs_on_any_page(visit, run, theme, viewport):
    tab = visit(theme=theme, viewport=viewport)
    tab.page.on("dialog", lambda dialog: tab.errors.append(dialog.message))
    sign_in(tab, "/sign-in/")
    place = run_factories.trajectory(run)
    turns = [one.get_absolute_url() for one in place.turns.order_by("pk")]
    paths = [
        "/model-runs/",
        "/model-runs/submit/",
        run.get_absolute_url(),
        place.get_absolute_url(),
        *turns,
        f"{turns[-1]}prompt/",
    ]
    for path in paths:
        page = tab.go(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert violations(page) == [], path
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= viewport["width"], f"{path} is {width} wide"
    assert tab.errors == []


def test_the_grid_follows_a_run_to_its_end_without_a_reload(visit, run):
    tab = visit()
    page = tab.go(run.get_absolute_url())
    expect(page.get_by_role("status").first).to_contain_text("Running")
    page.evaluate("window.sameDocument = true")
    run_factories.turn(run_factories.trajectory(run, 1, "multicast"))
    expect(page.locator("#run-progress")).to_contain_text("no code", timeout=10_000)
    run_factories.finish(run)
    expect(page.locator("#run-progress")).to_contain_text("It has ended.", timeout=10_000)
    assert page.evaluate("window.sameDocument") is True
    assert page.locator("[hx-get]").count() == 0
    assert tab.errors == []


def test_j_and_k_walk_through_the_turns(visit, run):
    tab = visit()
    place = run_factories.trajectory(run)
    first, second, third = (one.get_absolute_url() for one in place.turns.order_by("pk"))
    page = tab.go(first)
    for key, address in (("j", second), ("j", third), ("k", second), ("k", first)):
        page.keyboard.press(key)
        page.wait_for_url(f"**{address}")
    page.keyboard.press("k")
    assert page.url.endswith(first)
    assert tab.errors == []


def test_the_buttons_of_the_form_keep_what_was_typed_and_the_key(visit, run, endpoint):
    tab = visit()
    sign_in(tab, "/model-runs/submit/")
    page = tab.page
    page.wait_for_url("**/model-runs/submit/", wait_until="load")
    page.get_by_label("Address").fill(endpoint)
    page.get_by_label("Model", exact=True).fill("scripted-1")
    page.get_by_label("Key", exact=True).fill("sk-canary-1a2b3c4d")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#check")).to_contain_text("The endpoint answers", timeout=20_000)
    page.get_by_label("gemm_n256_k256").check()
    page.get_by_label("Target", exact=True).select_option("host")
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#check")).to_contain_text("At most 32 calls of the model", timeout=20_000)
    assert page.get_by_label("Key", exact=True).input_value() == "sk-canary-1a2b3c4d"
    page.get_by_role("button", name="Start").click()
    expect(page.locator("h1")).to_have_text("scripted-1 on gemm_n256_k256")
    assert ModelRun.objects.exclude(pk=run.pk).get().turn_count == 8
    assert tab.errors == []


def test_the_form_works_without_scripts(visit, run, endpoint):
    tab = visit(scripts=False)
    sign_in(tab, "/model-runs/submit/")
    page = tab.page
    page.wait_for_url("**/model-runs/submit/", wait_until="load")
    page.get_by_label("Address").fill(endpoint)
    page.get_by_label("Model", exact=True).fill("scripted-1")
    page.get_by_label("Key", exact=True).fill("sk-canary-1a2b3c4d")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#check")).to_contain_text("The endpoint answers", timeout=20_000)
    assert page.get_by_label("Model", exact=True).input_value() == "scripted-1"
    assert page.get_by_label("Key", exact=True).input_value() == ""
