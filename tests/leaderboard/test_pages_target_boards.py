"""The board of a target: triplets, ranks at a pinned p, filters in the address, panels."""

import json
from urllib.parse import parse_qs

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from leaderboard.charts.fast_p import series_css
from leaderboard.models import Entrant, ModelStanding
from leaderboard.services.standings import target_board
from leaderboard.services.standings_filters import BoardFilters, read_filters
from leaderboard.services.standings_update import standing_update
from leaderboard.views.pages import target_boards as pages
from leaderboard.views.presenters import target_boards as present
from leaderboard.views.presenters.target_boards import query_of, series_numbers
from tests.leaderboard import run_factories
from tests.leaderboard.boards_of_models import stand
from tests.leaderboard.reading import Page

GEMM, FORWARD = "gemm_n7168_k5120", "mha_with_lse_d128"
BOARD = "/boards/h200/"
HOSTILE = '=cmd|"<script>alert(1)</script>\u202e\U0001f600 شبكة'


@pytest.fixture
def board(problems, alice):
    """opus is fast on two problems; haiku correct on one and never fast."""
    stand(problems[GEMM], alice, "opus", None, 0.95, 0.92)
    stand(problems[FORWARD], alice, "opus", 1.0)
    return stand(problems[GEMM], alice, "haiku", 0.7, 0.7, 0.7, 0.7)


def read(client: Client, query: str = "") -> Page:
    return Page(client.get(f"{BOARD}{query}"))


def order(page: Page) -> list[str]:
    """Names in the order of the ranked table."""
    start, end = page.text.index("Rank Model"), page.text.index("Best speedup over")
    table = page.text[start:end]
    return sorted((name for name in ("opus", "haiku") if name in table), key=table.index)


def test_it_sets_triplets_with_the_target_line_above(client: Client, board):
    """GEMM by opus: 8 planned; correct are turns 2 and 3 of one variant, all with wgmma."""
    page = read(client)
    assert page.status == 200
    assert page.title == "Models on NVIDIA H200 · PTXBoard"
    assert "0.0 / 25.0 / 25.0 (0.0 / 25.0 / 25.0) 8 turns" in page.text
    assert "\N{EN DASH} / 0.950 / 0.950 (\N{EN DASH} / 0.950 / 0.950)" in page.text


def test_it_ranks_by_the_mean_over_problems_where_a_missing_one_counts_nothing(
    client: Client, board
):
    """At 0.9: opus (2/8 + 1/8) / 2, haiku 0. At 0: haiku (4/8 + 0) / 2, opus (2/8 + 1/8) / 2."""
    page = read(client)
    assert order(page) == ["opus", "haiku"]
    assert "1 opus cuda, schedule pack · badge 18.8 % 2 " in page.text
    assert "2 haiku cuda, schedule pack · badge 0.0 % 1 " in page.text
    page = read(client, "?p=0")
    assert order(page) == ["haiku", "opus"]
    assert "Fast_0 mean, higher is better" in page.text
    assert "1 haiku cuda, schedule pack · badge 25.0 % 1 " in page.text


def test_every_usual_p_is_one_link_away(client: Client, board):
    page = read(client, "?p=0.75&language=cuda")
    assert {"?language=cuda", "?language=cuda&p=0", "?language=cuda&p=0.5"} <= set(page.links())
    assert ("a", {"href": "?language=cuda&p=0.75", "aria-current": "true"}) in page.tags


def test_only_complete_rows_are_shown_where_that_is_asked_for(client: Client, board):
    assert order(read(client, "?complete=1")) == ["opus"]


def test_an_open_run_is_marked_as_running(client: Client, problems, alice):
    run = run_factories.run(problems[GEMM], owner=alice, model="slow", turns=4)
    run_factories.turn(run_factories.trajectory(run), kernel="// k", speedup=0.9)
    standing_update(run)
    assert "slow cuda, schedule pack · badge 0.0 % 1 running" in read(client).text


def test_published_rows_stand_below_and_have_no_rank(client: Client, board, alice):
    row = ModelStanding.objects.filter(problem_name=GEMM).first()
    row.pk, row.trust, row.source = None, "published", "a paper, Table 1"
    row.entrant = Entrant.objects.create(slug="paper", display_name="Famous", kind="model")
    row.newest_run, row.scoring_version = None, "paper"
    row._state.adding = True
    row.save()
    assert "Famous" not in read(client).text
    page = read(client, "?trust=all")
    assert "Published figures, not ranked — not known: published figures are not ranked" in (
        page.text
    )
    assert page.text.index("haiku") < page.text.index("Famous")
    assert "a paper, Table 1" in page.attributes("title")
    found = target_board(target="h200", filters=read_filters({"trust": "all"}))
    assert [row.rank for row in found.rows] == [1, 2, None]


def test_self_reported_rows_are_marked(client: Client, problems, alice):
    stand(problems[GEMM], alice, "told", 0.9, trust="self-reported")
    assert "No model is ranked with these choices" in read(client).text
    page = read(client, "?trust=self-reported")
    assert "told cuda, schedule pack · badge self-reported" in page.text


def test_panels_have_a_line_a_model_and_the_numbers_beside(client: Client, board):
    page = read(client)
    assert f"fast-p-{GEMM}" in page.attributes("id")
    lines = [attrs for tag, attrs in page.tags if attrs.get("class") == "line"]
    """GEMM: two models, any and target; attention: one model, both."""
    assert len(lines) == 6
    """Two of 4 planned turns of one variant, none of the other: mean 25 %, 0 to 50."""
    assert "opus 25.0 % 0\N{EN DASH}50 % 25.0 % 0\N{EN DASH}50 % 0.950" in page.text


def test_other_curves_can_be_chosen_and_a_missing_one_is_told(client: Client, board):
    found = target_board(target="h200")
    haiku = next(row.key for row in found.rows if row.entrant.display_name == "haiku")
    page = read(client, f"?on={haiku}&on=000000000000")
    lines = [attrs for tag, attrs in page.tags if attrs.get("class") == "line"]
    assert len(lines) == 2
    assert "1 of the curves that the address asks for is not ranked" in page.text


def test_the_first_five_are_drawn(client: Client, problems, alice):
    for number in range(7):
        stand(problems[GEMM], alice, f"m{number}", 0.91 + number / 100)
    page = read(client)
    lines = [attrs for tag, attrs in page.tags if attrs.get("class") == "line"]
    assert len(lines) == 2 * 5


def test_colours_stay_with_their_models_when_ranks_change(client: Client, board):
    def colours(query: str) -> dict[str, str]:
        found = target_board(target="h200", filters=read_filters(query))
        view = present.target_board_view(found, mine=frozenset(), page=1, on=())
        return {one.row.entrant.display_name: one.css for one in view.shown}

    assert colours({}) == colours({"p": "0"})


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("?p=foo", "p: 'foo' is no speedup; give a number from 0 to 1000"),
        ("?p=-1", "p: '-1' is no speedup; give a number from 0 to 1000"),
        ("?p=nan", "is no speedup"),
        ("?p=1e999", "is no speedup"),
        ("?language=rust", "language: there is no language 'rust'; known: cuda"),
        ("?level=everything", "level: there is no level 'everything'"),
        ("?trust=me", "trust: there is no trust 'me'"),
        ("?at_most=0", "at_most: '0' is no turn limit"),
        ("?complete=maybe&p=x", "complete: 'maybe' is neither yes nor no"),
        ("?p=<script>alert(1)</script>", "'<script>alert(1)</script>' is no speedup"),
    ],
)
def test_a_view_that_there_is_not_is_told_in_words(client: Client, board, query: str, text: str):
    page = read(client, query)
    assert page.status == 400
    assert text in page.text
    assert BOARD in page.links()


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("/boards/a100/", "There is no target 'a100'. Known targets: h200, h100, b200, host."),
        (f"{BOARD}?page=2", "There is no page 2; the last one is 1."),
        (f"{BOARD}?page=one", "There is no page 'one'; pages are counted from 1."),
    ],
)
def test_what_there_is_not_is_404_in_words(client: Client, board, address: str, text: str):
    page = Page(client.get(address))
    assert page.status == 404
    assert text in page.text


def test_names_are_text_wherever_they_stand(client: Client, problems, alice):
    stand(problems[GEMM], alice, HOSTILE[:100], 0.95)
    page = read(client)
    assert "<script>alert" not in page.html
    assert "[U+202E]" in page.text
    assert HOSTILE.replace("\u202e", "[U+202E]")[:34] in page.text
    assert "\u202e" not in page.html


def test_an_unmeasured_target_says_how_to_begin(client: Client, problems):
    page = Page(client.get("/boards/b200/"))
    assert "Never run here The project has no NVIDIA B200" in page.text
    assert "?trust=all" in page.links()
    assert reverse("submit-model") in page.links()


def test_it_takes_six_queries_whatever_the_number_of_models(
    client: Client, problems, alice, django_assert_max_num_queries
):
    for number in range(4):
        stand(problems[GEMM], alice, f"m{number}", 0.91 + number / 100)
    for query in ("", "?p=0.33"):
        with django_assert_max_num_queries(8):
            client.get(f"{BOARD}{query}")


def test_pages_of_models_hold_each_once(client: Client, problems, alice, monkeypatch):
    for number in range(5):
        stand(problems[GEMM], alice, f"m{number}", 0.95)
    for module in (pages, present):
        monkeypatch.setattr(module, "PAGE_ROWS", 2)
    seen = []
    for number in (1, 2, 3):
        page = read(client, f"?page={number}&p=0.5")
        seen += [one for one in page.attributes("id") if one.startswith("row-")]
        assert "1 m" in page.text
    assert len(seen) == len(set(seen)) == 5
    assert "?p=0.5&page=2" in read(client, "?p=0.5").links()


def test_ones_own_models_are_marked(client: Client, board, alice: User):
    assert "yours" not in read(client).text
    client.force_login(alice)
    assert read(client).text.count("yours") == 4


def test_it_is_cited_with_what_it_was_made_of(client: Client, board):
    page = read(client, "?p=0.5")
    assert "@misc{ptxboard-h200," in page.text
    assert "howpublished = {\\url{http://testserver/boards/h200/?p=0.5}}" in page.text


def test_an_unchanged_board_is_304(client: Client, board, problems, alice):
    first = client.get(BOARD)
    again = client.get(BOARD, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"{BOARD}?p=0.5", headers={"If-None-Match": first["ETag"]}).status_code == 200
    stand(problems[GEMM], alice, "newcomer", 0.99)
    assert client.get(BOARD, headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_a_link_previews_the_leaders(client: Client, board):
    page = read(client)
    told = {attrs["property"]: attrs["content"] for _, attrs in page.tags if "property" in attrs}
    assert told["og:title"] == "Models on the NVIDIA H200 · PTXBoard"
    assert told["og:description"] == "1. opus, 18.8 %; 2. haiku, 0.0 % (Fast_0.9)"
    assert told["og:image"] == "http://testserver/static/preview.png"


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"p": "0.5", "at_most": "4", "instructions": "1"},
        {"trust": "self-reported", "level": "schedule+guidance", "complete": "1"},
        {"trust": "all", "language": "triton", "scoring_version": "2"},
    ],
)
def test_a_view_has_one_address_that_reads_back(query: dict[str, str]):
    filters = read_filters(query)
    text = query_of(filters)
    back = {name: values[0] for name, values in parse_qs(text).items()}
    assert read_filters(back) == filters
    assert back == query


def test_usual_choices_are_left_out_of_addresses():
    assert query_of(BoardFilters()) == ""


def test_the_page_and_the_api_have_the_same_numbers(client: Client, board):
    told = client.get("/api/v1/boards/h200/").json()
    page = read(client)
    for row in told["rows"]:
        assert f"{row['rank']} {row['entrant']['display_name']} cuda" in page.text
        assert f"{row['score'] * 100:.1f} %" in page.text
    assert json.dumps(told)


def test_a_page_of_25_models_weighs_less_than_150_kb(client: Client, problems, alice):
    """Without gzip, and with five panels, two tables, and five curves of 96 turns each."""
    first = stand(problems[GEMM], alice, "m0", 0.95)
    row = ModelStanding.objects.get(entrant=first.entrant)
    turns = [[number % 8 + 1, 0.2 + number * 0.007, True] for number in range(32)]
    curve = [
        {"variant": name, "plans": [[8, 4]], "turns": turns[shift:]}
        for shift, name in enumerate(("a", "b", "c"))
    ]
    names = [GEMM, FORWARD, f"{FORWARD}_causal", "mha_bwd_d128", "mha_bwd_d128_causal"]
    for number in range(30):
        who = Entrant.objects.create(
            slug=f"s{number}", display_name=f"Model {number}", kind="model"
        )
        for name in names:
            row.pk, row.entrant, row.problem_name = None, who, name
            row.measured_digest = problems[name].measured_digest
            row.curve_json, row._state.adding = json.dumps(curve), True
            row.save()
    response = client.get(BOARD)
    assert Page(response).text.count("Model 1") > 1
    assert len(response.content) < 150_000


def test_each_ranked_row_has_its_badge(client: Client, board):
    links = [one for one in read(client, "?p=0.5").links() if "/badges/" in one]
    assert len(links) == 2
    answer = client.get(links[0])
    assert answer["Content-Type"] == "image/svg+xml"
    assert "#1 Fast_0.5 25.0 %" in answer.content.decode()


def test_what_it_took_is_told_a_turn_with_those_that_were_lost(client: Client, problems, alice):
    """4 turns were asked for, one of them lost; 6000 reasoning tokens and 2 dollars in all."""
    for model in ("opus", "haiku"):
        run = run_factories.run(problems[GEMM], owner=alice, model=model, turns=4)
        place = run_factories.trajectory(run)
        spent = {"reasoning_tokens": 1500, "cost_usd": 0.5}
        run_factories.turn(place, excluded="the disk was full", **spent)
        for _ in range(3):
            run_factories.turn(place, **spent)
        standing_update(run)
    page = read(client)
    assert "A haiku 0.0 % — not known: no correct turn has a speedup 1500 1500 $0.50" in page.text
    assert "reasoning tokens a turn" in page.text
    assert "US dollars a turn" in page.text


def test_an_unknown_cost_of_one_problem_makes_the_sum_unknown(client: Client, problems, alice):
    for name, cost in ((GEMM, 0.5), (FORWARD, None)):
        run = run_factories.run(problems[name], owner=alice, model="opus", turns=4)
        run_factories.turn(run_factories.trajectory(run), reasoning_tokens=10, cost_usd=cost)
        standing_update(run)
    stand(problems[GEMM], alice, "haiku", 0.9)
    for one in present_efforts(target_board(target="h200")):
        assert one.cost_usd is None


def present_efforts(board):
    view = present.target_board_view(board, mine=frozenset(), page=1, on=())
    return view.efforts.rows


def test_cost_is_averaged_over_all_problems(client: Client, problems, alice):
    for name, cost in ((GEMM, 0.5), (FORWARD, 1.5)):
        run = run_factories.run(problems[name], owner=alice, model="opus", turns=4)
        run_factories.turn(run_factories.trajectory(run), cost_usd=cost)
        standing_update(run)
    assert [one.cost_usd for one in present_efforts(target_board(target="h200"))] == [1.0]


def test_curves_that_are_drawn_together_differ_in_colour():
    keys = [f"model-{place:02}" for place in range(40)]
    drawn = ["model-00", "model-08", "model-16", "model-24", "model-32"]
    numbers = series_numbers(keys, drawn)
    assert sorted(numbers[key] for key in drawn) == [0, 1, 2, 3, 4]
    assert sorted(numbers.values()) == list(range(40))
    assert len({series_css(numbers[key]).split()[0] for key in drawn}) == 5
