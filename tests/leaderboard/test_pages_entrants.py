"""An entrant's page: kernels with ranks, standings, what came of each turn, ablation."""

import pytest
from django.test import Client

from leaderboard.models import Entrant
from leaderboard.services.standings_update import standing_update
from tests.leaderboard import factories, run_factories
from tests.leaderboard.boards_of_models import stand
from tests.leaderboard.reading import Page

GEMM, FORWARD = "gemm_n7168_k5120", "mha_with_lse_d128"


def read(client: Client, name: str, query: str = "") -> Page:
    return Page(client.get(f"/entrants/{Entrant.objects.get(display_name=name).slug}/{query}"))


def test_kernels_carry_their_rank_and_the_size_of_their_board(client: Client, problems):
    gemm, bob, carol = problems[GEMM], factories.entrant("Bob"), factories.entrant("Carol")
    for by, name, speedup in ((bob, "mine", 0.9), (carol, "best", 0.95), (carol, "equal", 0.9)):
        one = factories.submission(by=by, problem=gemm, name=name)
        factories.evaluated(one, factories.stages(gemm.record, speedup=speedup))
    page = read(client, "Bob")
    assert f"mine {GEMM} on h200 2 of 3 0.900" in page.text
    assert "best" not in page.text
    assert "1 kernel handed in" in page.text


def test_a_person_without_kernels_has_a_page(client: Client, db):
    factories.entrant("Nobody")
    page = read(client, "Nobody")
    assert page.status == 200
    assert "No kernel of this entrant is ranked" in page.text


def test_a_model_shows_where_it_stands(client: Client, problems, alice):
    stand(problems[GEMM], alice, "opus", None, 0.95)
    page = read(client, "opus")
    assert "Asked by alice, whose endpoint answered for it." in page.text
    assert "0.0 / 12.5 / 12.5" in page.text
    assert "8 — not known: no prices were given verified states by turn" in page.text


def test_it_draws_what_came_of_each_turn(client: Client, problems, alice):
    """One trajectory: build error, correct. The other: build error, and ended."""
    stand(problems[GEMM], alice, "opus", None, 0.95)
    page = read(client, "opus")
    assert "2 trajectories from turn to turn" in page.text
    assert "Correct 0 1 Build error 2 0 Ended 0 1" in page.text
    assert "turn 1 to 2: 1 from build error to correct" in page.html


def test_another_cell_can_be_chosen(client: Client, problems, alice):
    stand(problems[GEMM], alice, "opus", None, 0.95)
    stand(problems[FORWARD], alice, "opus", 0.95, None, None)
    page = read(client, "opus", f"?target=h200&problem={FORWARD}&level=schedule&trust=verified")
    assert f"What came of each turn {FORWARD} on h200, schedule" in page.text
    assert "Correct 1 0 0 Build error 1 1 1 Ended 0 1 1" in page.text


def test_knowledge_levels_stand_from_little_to_much(client: Client, problems, alice):
    for level, speedups in (("schedule", (0.9, 0.9)), ("parameters", (None, 0.5))):
        stand(problems[GEMM], alice, "opus", *speedups, level=level)
    page = read(client, "opus")
    table = page.text[page.text.index("Knowledge ablation") :]
    assert "parameters 12.5 % 12.5 % 0.500× 0.500× 8 schedule 25.0 % 25.0 % 0.900×" in table  # noqa: RUF001


def test_one_level_alone_is_no_ablation(client: Client, problems, alice):
    stand(problems[GEMM], alice, "opus", 0.9)
    stand(problems[FORWARD], alice, "opus", 0.9)
    assert "Knowledge ablation" not in read(client, "opus").text


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("/entrants/nobody/", "There is no entrant 'nobody'"),
        ("/entrants/a%00b/", "There is no entrant"),
        ("/entrants/bob/?target=a100", "stands nowhere with target 'a100'"),
        ("/entrants/bob/?problem=x%00y", "stands nowhere with problem"),
    ],
)
def test_what_there_is_not_is_told(client: Client, db, address: str, text: str):
    factories.entrant("Bob", slug="bob")
    page = Page(client.get(address))
    assert page.status == 404
    assert text in page.text


def test_hostile_names_are_text(client: Client, db):
    factories.entrant("<script>alert(1)</script>\u202e", slug="evil")
    page = Page(client.get("/entrants/evil/"))
    assert "<script>alert" not in page.html
    assert "\u202e" not in page.html
    assert page.title.startswith("<script>alert(1)</script>[U+202E]")


def test_its_queries_do_not_grow_with_its_kernels(
    client: Client, problems, django_assert_max_num_queries
):
    gemm, bob = problems[GEMM], factories.entrant("Bob", slug="bob")
    for number in range(6):
        one = factories.submission(by=bob, problem=gemm, name=f"k{number}")
        factories.evaluated(one, factories.stages(gemm.record, speedup=0.9))
    with django_assert_max_num_queries(8):
        client.get("/entrants/bob/")


def test_turns_that_were_lost_to_us_flow_nowhere(client: Client, problems, alice):
    run = run_factories.run(problems[GEMM], owner=alice, model="opus")
    place = run_factories.trajectory(run)
    run_factories.turn(place, excluded="the disk was full")
    run_factories.turn(place, kernel=factories.KERNEL, speedup=0.9)
    run_factories.turn(place)
    standing_update(run)
    page = read(client, "opus")
    assert "Correct 1 0 No code 0 1 From one turn" in page.text
