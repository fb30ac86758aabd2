"""Documentation on the site: made from code, complete, and with commands that fit."""

import shlex

import pytest
from django.test import Client

from evaluator.__main__ import _parser
from evaluator.records.verdicts import Stage
from leaderboard.templatetags.commands import reproduce_command
from leaderboard.templatetags.marks import ticked
from leaderboard.views.presenters import docs
from leaderboard.views.presenters.words import STAGES, TRUST
from tests.leaderboard import factories
from tests.leaderboard.reading import Page

PAGES = ("/docs/", "/docs/numbers/", "/docs/limits/", "/docs/undetected/", "/docs/reproduce/")


@pytest.mark.parametrize("address", PAGES)
def test_every_page_is_there_without_any_data(client: Client, db, address: str):
    assert client.get(address).status_code == 200


def test_the_index_leads_to_all_of_them(client: Client, db):
    assert {*PAGES[1:], "/rules/", "/packs/", "/api-guide/"} <= set(
        Page(client.get("/docs/")).links()
    )


def test_each_stage_tells_what_gets_past_it(client: Client, db):
    page = Page(client.get("/docs/undetected/"))
    for stage in Stage:
        notes = next(one for one in docs.stage_notes() if one.stage is stage)
        assert STAGES[stage][0] in page.text
        assert dict(notes.fields).keys() >= {"In", "Out", "Verdicts", "Raises", "Source"}
        assert notes.gets_past or notes.prose
    assert "What gets past Writes beyond a guard band that hit no other tensor" in page.text
    assert "`" not in page.text


def test_limits_are_those_of_the_code(client: Client, db, settings):
    settings.PTXBOARD_PARALLEL_LIMIT = 7
    from evaluator.records.candidate import MAX_SOURCE_FILES
    from evaluator.stages.policy import POLICY_SECONDS

    page = Page(client.get("/docs/limits/"))
    assert f"files of a submission {MAX_SOURCE_FILES} evaluator.records.candidate" in page.text
    assert f"policy stage {POLICY_SECONDS:g} s evaluator.stages.policy" in page.text
    assert "guard band before and after each output 64.0 KiB" in page.text
    assert "trajectories of one user that are asked or judged at once 7" in page.text
    assert len(docs.limits()) == len(docs.LIMITS)


def test_a_limit_that_is_gone_is_an_error_and_not_a_gap():
    with pytest.raises(LookupError, match=r"evaluator\.build has no GONE"):
        docs.constant("evaluator.build", "GONE")


def test_tolerances_of_every_problem_are_listed(client: Client, problems):
    page = Page(client.get("/docs/limits/"))
    for name, row in problems.items():
        tolerance = row.record.tolerance
        assert f"{name} {tolerance.atol} {tolerance.rtol} {row.record.baseline.name}" in page.text


def test_every_kind_of_trust_is_explained(client: Client, db):
    page = Page(client.get("/docs/numbers/"))
    for one in TRUST.values():
        assert f"{one.word} {one.title}" in page.text


def test_the_command_fetches_and_measures_the_very_sources(client: Client, problems):
    gemm = problems["gemm_n7168_k5120"]
    one = factories.submission(by=factories.entrant("Bob"), problem=gemm, name="it")
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.9))
    command = reproduce_command(one, "http://testserver")
    assert command in Page(client.get("/docs/reproduce/")).html.replace("&amp;", "&")
    fetch, evaluate = (shlex.split(part) for part in command.split(" && "))
    address = next(word for word in fetch if word.startswith("http://testserver"))
    source = client.get(address.removeprefix("http://testserver"))
    assert source.content.decode() == one.candidate.sources[0].content
    parsed = _parser(with_worker=False).parse_args(evaluate[1:])
    assert (parsed.problem, parsed.target) == (gemm.name, "h200")
    assert [str(path) for path in parsed.sources] == [fetch[-1].removeprefix("./")]


def test_text_between_backticks_is_code_and_all_of_it_is_escaped():
    assert ticked("see `a<b>` & c") == "see <code>a&lt;b&gt;</code> &amp; c"
