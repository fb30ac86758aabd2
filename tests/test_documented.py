"""Nothing a user can meet is undocumented: README, the rules page, the API's own document.

A new verdict, stage, target, subcommand, route or setting fails here until it is written down.
"""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLPattern, URLResolver

from evaluator.__main__ import _parser
from evaluator.records.summary import LANE_OF
from evaluator.records.verdicts import InstructionStatus, Stage, Tier, Verdict
from evaluator.targets import TARGETS
from leaderboard.api.urls import urlpatterns as api_patterns
from leaderboard.views.presenters.words import INSTRUCTIONS, STAGES, TIERS, VERDICTS
from tests.leaderboard.reading import Page

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CODE = ("evaluator", "leaderboard", "webapp", "examples", "deploy")
SETTING = re.compile(r"""["'](PTXBOARD_[A-Z_]+)["']""")
ENVIRONMENT = re.compile(
    r"""(?:env_(?:bool|int|list|path|text|url)\(\s*|environ(?:\.get\(|\[))"(PTXBOARD_\w+)\""""
)


def table(heading: str) -> dict[str, str]:
    """First column of the README's table under a header row that starts so, backticks off."""
    lines = README.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |")) + 2
    rows = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        name, *rest = (part.strip() for part in line.strip("|").split("|"))
        rows[name.strip("`")] = " ".join(rest)
    return rows


def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> set[str]:
    """Addresses with their parameters in braces, as OpenAPI writes them; each once."""
    found = set()
    for pattern in patterns:
        address = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found |= routes(pattern.url_patterns, address)
        else:
            found.add(re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", address).rstrip("/"))
    return found


def settings_read() -> set[str]:
    """Every PTXBOARD_* variable that the code reads from the environment."""
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    named: set[str] = set()
    for path in files:
        named |= set(ENVIRONMENT.findall(path.read_text()))
    for path in (ROOT / "evaluator" / "sandbox.py",):
        named |= set(SETTING.findall(path.read_text()))
    return named


@pytest.fixture
def rules(client: Client, db: None) -> Page:
    return Page(client.get("/rules/"))


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_is_in_the_readme_with_its_lane_and_on_the_rules_page(rules, stage):
    assert table("stage")[stage.value].startswith(f"{LANE_OF[stage].value} ")
    assert STAGES[stage][1] in rules.text


def test_the_readme_lists_no_stage_that_is_gone():
    assert list(table("stage")) == [stage.value for stage in Stage]


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_explained_with_a_next_step(rules, verdict):
    assert verdict.value in rules.text
    assert VERDICTS[verdict].meaning in rules.text
    assert VERDICTS[verdict].next_step in rules.text
    assert verdict.value in rules.attributes("id")


def test_every_word_about_target_instructions_has_an_explanation(rules):
    assert set(INSTRUCTIONS) == set(InstructionStatus)
    assert set(TIERS) == set(Tier)
    for tier in Tier:
        assert tier.value in rules.text


def test_every_target_is_in_the_readme():
    assert set(table("target")) == set(TARGETS)


def test_every_subcommand_is_in_the_readme():
    commands = _parser(with_worker=False)._subparsers._group_actions[0].choices
    missing = {name for name in commands if f"ptxboard {name}" not in README}
    assert missing == set()
    assert len(commands) >= 7


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "leaderboard/management/commands").glob("[a-z]*.py")),
    ids=lambda p: p.stem,
)
def test_every_management_command_says_what_it_does(path):
    assert re.search(r"\bhelp = ", path.read_text())


def test_every_setting_is_in_the_readme():
    read, documented = settings_read(), set(table("variable"))
    assert read - documented == set()
    assert documented - read == set()
    assert "PTXBOARD_DATABASE_URL" in read


def test_every_route_of_the_api_is_in_its_document(client: Client, db: None):
    document = client.get("/api/schema/").content.decode()
    described = {address.strip("/") for address in re.findall(r"^  (/api/\S+?):$", document, re.M)}
    served = {f"api/{address}" for address in routes(api_patterns)} - {"api/schema"}
    assert served == described
    assert len(served) >= 19


def test_every_route_for_people_is_in_the_guide(client: Client, db: None):
    guide = Page(client.get("/api-guide/"))
    words = [*guide.text.split(), *guide.links()]
    named = {re.sub(r"<\w+>", "{}", word).rstrip("/,;") for word in words}
    for address in routes(api_patterns):
        if "worker/" not in address:
            assert re.sub(r"{\w+}", "{}", f"/api/{address}") in named, address


def test_the_readme_names_no_file_that_is_gone():
    paths = re.findall(r"\b((?:examples|tests|docs|deploy|evaluator|packs)/[\w./*-]+\.\w+)", README)
    missing = [path for path in paths if not list(ROOT.glob(path))]
    assert missing == []


def test_defaults_of_the_settings_are_as_the_readme_says():
    rows = table("variable")
    for name in ("PTXBOARD_IN_FLIGHT_LIMIT", "PTXBOARD_MAX_BODY_BYTES"):
        assert str(getattr(settings, name)) in rows[name].replace(",", "")
