from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from leaderboard.models import Evaluation, Problem
from tests.leaderboard import factories
from tests.leaderboard.reading import Page

BOARD = "/boards/h200/gemm_n7168_k5120/"


@pytest.fixture
def ranked(problems: dict[str, Problem], alice_entrant) -> list[Evaluation]:
    """Three kernels on the H200's GEMM board: two with equal speedups, one slower."""
    gemm, bob = problems["gemm_n7168_k5120"], factories.entrant("Bob")
    rows = [
        (alice_entrant, "later equal", 0.95, 1.0, 2),
        (bob, "earlier equal", 0.95, 1.0, 1),
        (bob, "plain", 0.0512, None, 3),
    ]
    for by, name, speedup, share, hours in rows:
        one = factories.submission(
            by=by, problem=gemm, name=name, created_at=factories.NOW + timedelta(hours=hours)
        )
        factories.evaluated(one, factories.stages(gemm.record, speedup=speedup, work_share=share))
    return list(Evaluation.objects.order_by("-speedup", "submission__created_at"))


def test_it_ranks_by_speedup_with_equal_ranks_and_the_earlier_first(client: Client, ranked):
    page = Page(client.get(BOARD))
    assert page.status == 200
    assert page.title == "gemm_n7168_k5120 on NVIDIA H200 · PTXBoard"
    order = [page.text.index(name) for name in ("earlier equal", "later equal", "plain")]
    assert order == sorted(order)
    assert "1 earlier equal Bob 0.950" in page.text
    assert "1 later equal alice 0.950" in page.text
    assert "3 plain Bob 0.051" in page.text


def test_it_shows_rate_share_of_peak_and_target_instructions(client: Client, ranked):
    page = Page(client.get(BOARD))
    assert "0.8547 703.5 71.1 % executed tier mma 100.0 %" in page.text
    assert "absent — not known: no target instruction in the binary" in page.text
    assert "n = 150" in page.text


def test_it_sets_the_baseline_as_an_unranked_row(client: Client, ranked):
    page = Page(client.get(BOARD))
    baseline = page.text[page.text.index("the baseline is not ranked") :]
    assert baseline.startswith(
        "the baseline is not ranked cuBLAS baseline cuBLAS 13.0.2.14 1.000 by definition 0.8120"
    )
    assert ("tr", {"class": "baseline"}) in page.tags


def test_it_marks_ones_own_rows(client: Client, alice: User, ranked):
    assert "yours" not in Page(client.get(BOARD)).text
    client.force_login(alice)
    page = Page(client.get(BOARD))
    assert page.text.count("yours") == 1
    assert [attrs for tag, attrs in page.tags if attrs.get("class") == "mine"] != []


def test_it_asks_three_queries_whatever_the_number_of_rows(
    client: Client, ranked, django_assert_num_queries
):
    with django_assert_num_queries(3):
        client.get(BOARD)


def test_it_asks_four_queries_for_the_front_page(client: Client, ranked, django_assert_num_queries):
    with django_assert_num_queries(4):
        client.get("/")


def test_it_tells_how_to_be_first_on_an_empty_board(client: Client, problems):
    page = Page(client.get("/boards/h200/mha_bwd_d64/"))
    assert "No kernel is ranked yet Be the first: copy a prototype" in page.text
    assert f"{reverse('submit')}?problem=mha_bwd_d64&target=h200" in page.links()


def test_it_says_that_the_b200_never_ran_here(client: Client, problems):
    page = Page(client.get("/boards/b200/gemm_n7168_k5120/"))
    assert "Never run here The project has no NVIDIA B200." in page.text


def test_it_marks_the_development_target(client: Client, problems):
    page = Page(client.get("/boards/host/gemm_n256_k256/"))
    assert "development target" in page.text
    assert "no paper should cite it" in page.text


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (
            "/boards/a100/gemm_n7168_k5120/",
            "There is no target 'a100'. Known targets: h200, h100, b200, host.",
        ),
        (
            "/boards/h200/gemm_n7168_k5121/",
            "There is no problem 'gemm_n7168_k5121'. Did you mean 'gemm_n7168_k5120'?",
        ),
        (
            "/boards/host/gemm_n7168_k5120/",
            "gemm_n7168_k5120 is not offered on host. It is offered on: h200, h100, b200.",
        ),
        (
            "/boards/h200/a%00b/",
            "There is no problem 'a\\x00b'. The list of problems has them all.",
        ),
    ],
)
def test_it_says_which_boards_there_are(client: Client, problems, address: str, text: str):
    page = Page(client.get(address))
    assert page.status == 404
    assert text in page.text


def test_it_names_leader_and_size_of_each_board_in_the_grid(client: Client, ranked):
    for address in ("/", "/boards/"):
        page = Page(client.get(address))
        assert "0.950× Bob, 3 ranked" in page.text  # noqa: RUF001
        assert BOARD in page.links()
        assert "build only: gemm_n7168_k5120 on NVIDIA B200" in page.text


def test_it_disarms_formulas_in_the_csv(client: Client, problems):
    gemm = problems["gemm_n7168_k5120"]
    one = factories.submission(
        by=factories.entrant("+cmd|' /C calc'!A0"), problem=gemm, name='=HYPERLINK("x")'
    )
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.94))
    response = client.get("/boards/h200/gemm_n7168_k5120.csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    head, row = response.content.decode().splitlines()
    assert head.startswith("rank,submission,kernel,entrant,problem,target,speedup,")
    assert row.startswith(f"""1,{one.id},"'=HYPERLINK(""x"")",'+cmd|' /C calc'!A0,gemm_""")
    assert ",0.94," in row


def test_it_shows_full_precision_in_the_csv_and_the_same_rank_as_the_page(client: Client, ranked):
    rows = client.get("/boards/h200/gemm_n7168_k5120.csv").content.decode().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["1", "1", "3"]
    assert rows[0].split(",")[10] == str(ranked[0].latency_ns)
