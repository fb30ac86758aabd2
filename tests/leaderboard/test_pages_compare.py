"""Two to four kernels, or models, side by side."""

import uuid

import pytest
from django.test import Client

from evaluator.records.verdicts import Stage, Verdict
from leaderboard.models import Entrant
from tests.leaderboard import factories
from tests.leaderboard.boards_of_models import stand
from tests.leaderboard.reading import Page

GEMM, FORWARD = "gemm_n7168_k5120", "mha_with_lse_d128"
OTHER = factories.KERNEL.replace("float sum = 0.0f;", "double sum = 0.0;")


@pytest.fixture
def gemm(problems):
    return problems[GEMM]


def kernel(problem, name: str, speedup: float, source: str = factories.KERNEL, **more):
    by = factories.entrant(more.pop("by", "Bob"))
    one = factories.submission(by=by, problem=problem, name=name, source=source)
    return factories.evaluated(one, factories.stages(problem.record, speedup=speedup, **more))


def read(client: Client, *wanted: object) -> Page:
    query = {
        letter: str(getattr(one, "pk", one)) for letter, one in zip("abcd", wanted, strict=False)
    }
    return Page(client.get("/compare/", query))


def test_facts_stand_beside_each_other_with_the_first_as_the_measure(client: Client, gemm):
    first, second = kernel(gemm, "first", 0.8), kernel(gemm, "second", 1.0, work_share=None)
    page = read(client, first, second)
    assert page.status == 200
    assert page.title == "first against second · PTXBoard"
    assert "A first B second" in page.text
    assert "Speedup 0.800× 0.798" in page.text  # noqa: RUF001
    assert "Against A — 1.250×" in page.text  # noqa: RUF001
    assert "Target instructions executed tier mma absent" in page.text
    assert "Registers 168 spills, 1.00 KiB static shared 168 spills" in page.text


def test_it_says_where_the_intervals_overlap(client: Client, gemm):
    page = read(client, kernel(gemm, "first", 0.95), kernel(gemm, "second", 0.9501))
    assert "the intervals overlap" in page.text
    assert (
        "the intervals overlap"
        not in read(client, kernel(gemm, "slow", 0.5), kernel(gemm, "fast", 0.95)).text
    )


def test_the_code_is_compared_with_the_first(client: Client, gemm):
    page = read(client, kernel(gemm, "first", 0.8), kernel(gemm, "second", 0.9, OTHER))
    assert "From A to B 2 lines added, 2 removed." in page.text
    assert "double sum = 0.0;" in page.text
    third = read(
        client, kernel(gemm, "a", 0.8), kernel(gemm, "b", 0.8), kernel(gemm, "c", 0.8, OTHER)
    )
    assert "From A to C" in third.text
    assert "From B" not in third.text


def test_every_timed_call_is_drawn_and_told(client: Client, gemm):
    page = read(client, kernel(gemm, "first", 0.8), kernel(gemm, "second", 0.9))
    drawn = [attrs["d"] for _, attrs in page.tags if attrs.get("class") == "fine-ticks"]
    assert [path.count("M") for path in drawn] == [150, 150]
    assert "A 150 " in page.text[page.text.index("Kernel Calls Fastest") :]


def test_a_failed_kernel_has_reasons_in_place_of_numbers(client: Client, gemm):
    by = factories.entrant("Carol")
    one = factories.submission(by=by, problem=gemm, name="broken")
    results = factories.failing(
        factories.stages(gemm.record), Stage.COMPILATION, Verdict.COMPILE_ERROR, "no such header"
    )
    broken = factories.evaluated(one, results)
    page = read(client, kernel(gemm, "whole", 0.8), broken)
    assert "not known: only a kernel that passed has a speedup" in page.text
    assert "not known: one of the two has no speedup" in page.text
    assert "Compilation Passed" in page.text
    assert "no such header" in page.text


def test_times_of_different_problems_are_not_compared(client: Client, gemm, problems):
    page = read(client, kernel(gemm, "first", 0.8), kernel(problems[FORWARD], "second", 0.9))
    assert "The problems differ" in page.text
    assert "not known: the problems differ" in page.text
    assert "Samples" not in page.text


def test_names_from_strangers_are_text(client: Client, gemm):
    one = kernel(gemm, "<img src=x onerror=alert(1)>", 0.8, by='"><svg/onload=alert(2)>')
    page = read(client, one, kernel(gemm, "\u202eevil", 0.9))
    assert "<img src=x" not in page.html
    assert "<svg/onload" not in page.html
    assert "[U+202E]evil" in page.text
    assert "\u202e" not in page.html


@pytest.mark.parametrize("wanted", [[], ["x"]])
def test_without_two_it_asks_for_them(client: Client, db, wanted):
    page = read(client, *wanted)
    assert page.status == 200
    assert page.attributes("name").count("a") == 1
    assert ("name a second" in page.text) == bool(wanted)


def test_it_says_what_cannot_be_compared(client: Client, gemm):
    one, nobody = kernel(gemm, "first", 0.8), uuid.uuid4()
    for wanted, text in (
        ((one, nobody), f"There is no submission {nobody}."),
        ((one, "opus"), "kernels are compared with kernels"),
        (("opus", "<b>"), "'opus' is neither the id of a submission nor the name of an entrant"),
        (("a\x00b", "c"), "is neither the id"),
    ):
        page = read(client, *wanted)
        assert page.status == 404
        assert text in page.text


def test_an_address_of_a_page_does_as_well(client: Client, gemm):
    first, second = kernel(gemm, "first", 0.8), kernel(gemm, "second", 0.9)
    page = read(client, f"http://testserver{first.get_absolute_url()}", second)
    assert "A first B second" in page.text


def test_of_more_than_four_ticked_the_first_four_are_compared(client: Client, gemm):
    ids = [str(kernel(gemm, f"k{number}", 0.8).pk) for number in range(5)]
    answer = client.get("/compare/", {"k": ids})
    assert answer["Location"].endswith(f"&d={ids[3]}&more=1")
    assert "More than four were ticked" in Page(client.get(answer["Location"])).text


def test_one_that_is_ticked_twice_stands_once(client: Client, db):
    assert client.get("/compare/", {"k": ["x", "x", "y"]})["Location"] == "/compare/?a=x&b=y"


class TestModels:
    @pytest.fixture
    def slugs(self, problems, alice) -> list[str]:
        stand(problems[GEMM], alice, "opus", None, 0.95)
        stand(problems[GEMM], alice, "haiku", 0.7, 0.7)
        return [Entrant.objects.get(display_name=name).slug for name in ("opus", "haiku")]

    def test_they_stand_side_by_side(self, client: Client, slugs):
        page = read(client, *slugs)
        assert page.title == "opus against haiku · PTXBoard"
        assert "Models side by side on the NVIDIA H200" in page.text
        both = "0.0 / 12.5 / 12.5(0.0 / 12.5 / 12.5)\N{EN DASH} / 0.950 / 0.950"
        assert f"{GEMM} {both}" in page.text.replace(" (", "(").replace(") ", ")")
        assert f"fast-p-{GEMM}" in page.attributes("id")

    def test_the_one_that_does_not_stand_there_is_named(self, client: Client, slugs):
        nobody = factories.entrant("Nobody", slug="nobody")
        page = read(client, slugs[0], nobody.slug)
        assert "Nobody does not stand on this target." in page.text

    def test_an_unknown_target_or_p_is_told(self, client: Client, slugs):
        for more, text in (("target=a100", "There is no target 'a100'"), ("p=x", "is no speedup")):
            page = Page(client.get(f"/compare/?a={slugs[0]}&b={slugs[1]}&{more}"))
            assert page.status == 404
            assert text in page.text
