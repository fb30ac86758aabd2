"""What every page must keep to: text stays text, nothing inline, nothing from elsewhere."""

import hashlib
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from evaluator.records.verdicts import Stage, Verdict
from leaderboard.models import Problem, Submission
from tests.leaderboard import factories
from tests.leaderboard.reading import Page

NAME = "<img src=x onerror=alert(1)>"
AUTHOR = '"><svg/onload=alert(2)>'
MESSAGE = 'error: identifier "</pre><script>alert(3)</script>" is undefined'
SOURCE = "int x; // </textarea></code><script>alert(5)</script>\n"
DESCRIPTION = "read [this](javascript:alert(4)) \u202egnp.exe"
VENDOR = Path(settings.BASE_DIR) / "static" / "vendor"


@pytest.fixture
def hostile(problems: dict[str, Problem]) -> Submission:
    gemm = problems["gemm_n7168_k5120"]
    entrant = factories.entrant(AUTHOR)
    one = factories.submission(
        by=entrant, problem=gemm, name=NAME, source=SOURCE, description=DESCRIPTION
    )
    results = factories.failing(
        factories.stages(gemm.record),
        Stage.COMPILATION,
        Verdict.COMPILE_ERROR,
        MESSAGE,
        log=MESSAGE,
    )
    factories.evaluated(one, results)
    ranked = factories.submission(by=entrant, problem=gemm, name=NAME, source=SOURCE)
    named = gemm.record.baseline.model_copy(update={"name": "</script><script>alert(6)"})
    stages = factories.stages(gemm.record, speedup=0.9)
    timing = stages[-1]
    evidence = timing.evidence.model_copy(update={"baseline": named})
    stages[-1] = timing.model_copy(update={"evidence": evidence})
    factories.evaluated(ranked, stages)
    return one


def addresses() -> list[str]:
    ids = [str(pk) for pk in Submission.objects.values_list("pk", flat=True)]
    return [
        "/",
        "/boards/",
        "/boards/h200/gemm_n7168_k5120/",
        "/boards/b200/gemm_n7168_k5120/",
        "/problems/",
        "/problems/gemm_n7168_k5120/",
        "/targets/",
        "/rules/",
        "/workers/",
        "/api-guide/",
        "/submissions/",
        "/submissions/mine/",
        "/submit/",
        "/account/",
        "/nowhere/",
        *(f"/submissions/{pk}/" for pk in ids),
        *(f"/submissions/{pk}/progress/" for pk in ids),
    ]


def test_it_shows_hostile_text_as_text_on_every_page(client: Client, hostile, alice: User):
    client.force_login(alice)
    for address in addresses():
        page = Page(client.get(address))
        names = {tag for tag, _ in page.tags}
        assert "img" not in names, address
        assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs), address
        for tag, data in page.raw:
            assert tag != "script" or not data.strip() or "alert(" not in data or "<" not in data
        assert "\u202e" not in page.html, address
        assert not any(link.startswith("javascript:") for link in page.links()), address


def test_it_quotes_name_author_message_and_source_to_the_letter(client: Client, hostile):
    page = Page(client.get(hostile.get_absolute_url()))
    assert page.title == f"{NAME} · PTXBoard"
    assert NAME in page.text
    assert AUTHOR in page.text
    assert page.text.count(MESSAGE) >= 2
    assert SOURCE.strip() in page.text
    assert "[U+202E]gnp.exe" in page.text


def test_it_escapes_the_numbers_json_that_a_page_carries(client: Client, hostile):
    ranked = Submission.objects.exclude(pk=hostile.pk).get()
    page = Page(client.get(ranked.get_absolute_url()))
    figures = [data for tag, data in page.raw if tag == "script" and data.strip()]
    assert len(figures) == 1
    assert "\\u003C/script\\u003E\\u003Cscript\\u003Ealert(6)" in figures[0]


def test_it_sends_a_policy_without_inline_code_with_every_page(client: Client, hostile, alice):
    client.force_login(alice)
    for address in addresses():
        policy = client.get(address)["Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["script-src"] == "'self'", address
        assert rules["style-src"] == "'self'", address
        assert rules["default-src"] == "'none'", address


def test_it_carries_no_inline_script_style_or_foreign_address(client: Client, hostile, alice):
    client.force_login(alice)
    for address in addresses():
        page = Page(client.get(address))
        for tag, attrs in page.tags:
            assert "style" not in attrs, (address, tag, attrs)
            assert tag != "style", address
            if tag == "script":
                assert "src" in attrs or attrs["type"] == "application/json", address
            for name in ("src", "href", "action", "hx-get"):
                value = attrs.get(name, "/")
                assert re.match(r"[/?#]", value), (address, value)
                assert not value.startswith("//"), (address, value)


def test_it_keeps_the_board_below_its_budget(client: Client, hostile):
    page = Page(client.get("/boards/h200/gemm_n7168_k5120/"))
    local = [value for _, attrs in page.tags for key, value in attrs.items() if key in ("src",)]
    styles = [attrs["href"] for tag, attrs in page.tags if tag == "link"]
    root = Path(settings.BASE_DIR)
    weights = [(root / name.lstrip("/")).stat().st_size for name in local + styles]
    assert len(page.html.encode()) + sum(weights) < 150_000
    assert not any("plotly" in name for name in local)


def test_it_serves_third_party_files_unchanged():
    sums = dict(reversed(line.split()) for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    files = {path.name for path in VENDOR.iterdir()} - {"SHA256SUMS", "README.md"}
    assert set(sums) == files
    for name, digest in sums.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_it_renders_the_error_page_of_a_broken_site_without_a_request():
    from django.template.loader import render_to_string

    page = render_to_string("500.html")
    assert "Our fault" in page


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_it_draws_the_chosen_theme_from_the_first_byte(client: Client, db, theme: str):
    client.cookies["theme"] = theme
    assert f'<html lang="en" data-theme="{theme}">' in client.get("/rules/").content.decode()


def test_it_ignores_a_theme_that_it_does_not_know(client: Client, db):
    client.cookies["theme"] = '"><script>'
    assert '<html lang="en">' in client.get("/rules/").content.decode()
