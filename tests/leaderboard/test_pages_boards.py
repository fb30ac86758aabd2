import csv
import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from leaderboard.models import Evaluation, Job, Problem
from leaderboard.views.pages import boards as pages
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
    assert "1 1\N{EN DASH}2 earlier equal Bob 0.950" in page.text
    assert "1 1\N{EN DASH}2 later equal alice 0.950" in page.text
    assert "3 plain Bob 0.051" in page.text


def test_it_shows_rate_share_of_peak_and_target_instructions(client: Client, ranked):
    page = Page(client.get(BOARD))
    assert "0.8547 ±0.5 % 703.5 71.1 % executed tier mma 100.0 %" in page.text
    assert "100.0 % 168 spills 1.00 KiB" in page.text
    assert "absent — not known: no target instruction in the binary" in page.text
    assert "150 timed calls" in page.attributes("title")
    assert "Trust" in page.text
    assert "verified" in page.text


def test_it_sets_the_baseline_as_an_unranked_row(client: Client, ranked):
    page = Page(client.get(BOARD))
    baseline = page.text[page.text.index("the baseline is not ranked") :]
    assert baseline.startswith(
        "the baseline is not ranked cuBLAS baseline cuBLAS 13.0.2.14 1.000 by definition "
        "0.8120 n = 450 "
    )
    assert ("tr", {"class": "baseline"}) in page.tags


def test_it_marks_ones_own_rows(client: Client, alice: User, ranked):
    assert "yours" not in Page(client.get(BOARD)).text
    client.force_login(alice)
    page = Page(client.get(BOARD))
    assert page.text.count("yours") == 1
    assert [attrs for tag, attrs in page.tags if attrs.get("class") == "mine"] != []


def test_it_asks_five_queries_whatever_the_number_of_rows(
    client: Client, ranked, django_assert_num_queries
):
    with django_assert_num_queries(5):
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
    assert head.startswith(
        "rank,best_rank,worst_rank,submission,kernel,entrant,problem,target,speedup,"
    )
    assert row.startswith(f"""1,1,1,{one.id},"'=HYPERLINK(""x"")",'+cmd|' /C calc'!A0,gemm_""")
    assert ",0.94," in row


def test_it_shows_full_precision_in_the_csv_and_the_same_rank_as_the_page(client: Client, ranked):
    rows = client.get("/boards/h200/gemm_n7168_k5120.csv").content.decode().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["1", "1", "3"]
    assert rows[0].split(",")[12] == str(ranked[0].latency_ns)


def test_a_band_holds_every_rank_that_the_intervals_allow(client: Client, problems):
    """0.95 and 0.9495 overlap, 0.90 is apart from both."""
    gemm, bob = problems["gemm_n7168_k5120"], factories.entrant("Bob")
    for speedup in (0.95, 0.9495, 0.90):
        one = factories.submission(by=bob, problem=gemm, name=f"at {speedup}")
        factories.evaluated(one, factories.stages(gemm.record, speedup=speedup))
    rows = client.get("/boards/h200/gemm_n7168_k5120.csv").content.decode().splitlines()[1:]
    assert [row.split(",")[:3] for row in rows] == [["1", "1", "2"], ["2", "1", "2"], ["3"] * 3]
    page = Page(client.get(BOARD))
    assert "2 1\N{EN DASH}2 at 0.9495" in page.text
    assert "3 at 0.9 " in page.text


def test_pages_hold_each_row_once_with_equal_ranks_over_their_border(
    client: Client, problems, monkeypatch: pytest.MonkeyPatch
):
    """60 rows, 25 a page, 40 of them equal: O-39."""
    monkeypatch.setattr(pages, "PAGE_ROWS", 25)
    gemm, bob = problems["gemm_n7168_k5120"], factories.entrant("Bob")
    first = factories.submission(by=bob, problem=gemm, name="row 0")
    factories.evaluated(first, factories.stages(gemm.record, speedup=1.5))
    row = first.evaluations.get()
    for number in range(1, 60):
        speedup = 1.5 if number < 40 else 1.4 - number / 1000
        _copy(row, number, speedup)
    seen = [_row_ids(client, number) for number in (1, 2, 3)]
    assert [len(ids) for ids in seen] == [25, 25, 10]
    assert len({one for ids in seen for one in ids}) == 60
    assert seen == [_row_ids(client, number) for number in (1, 2, 3)]
    second = Page(client.get(f"{BOARD}?page=2"))
    assert "60 page 2 of 3" in second.text
    assert "1 1\N{EN DASH}40 row 39" in second.text
    assert "41 41\N{EN DASH}" in second.text
    assert "?page=3" in second.links()


def _copy(row: Evaluation, number: int, speedup: float) -> None:
    """Another kernel's evaluation with this speedup, known to half a per mille."""
    one = row.submission
    one.pk, one.candidate_digest, one.name = None, f"{number:064x}", f"row {number}"
    one.id, one.created_at = uuid.uuid4(), factories.NOW + timedelta(minutes=number)
    one._state.adding = True
    one.save()
    job = Job.objects.create(
        submission=one,
        number=1,
        created_at=factories.NOW,
        lane="gpu",
        state="DONE",
        ended_at=factories.NOW,
    )
    row.pk, row.job, row.submission = None, job, one
    row.speedup, row.speedup_low, row.speedup_high = speedup, speedup * 0.9995, speedup * 1.0005
    row._state.adding = True
    row.save()


def _row_ids(client: Client, number: int) -> list[str]:
    page = Page(client.get(f"{BOARD}?page={number}"))
    return [one for one in page.attributes("id") if one.startswith("row-")]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("2", "There is no page 2; the last one is 1."),
        ("0", "There is no page '0'; pages are counted from 1."),
        ("-1", "There is no page '-1'; pages are counted from 1."),
        ("x<b>", "There is no page 'x<b>'; pages are counted from 1."),
        ("9" * 400, "There is no page"),
        ("\N{SUPERSCRIPT TWO}", "pages are counted from 1."),
    ],
)
def test_it_says_which_pages_there_are(client: Client, ranked, page: str, text: str):
    answer = Page(client.get(BOARD, {"page": page}))
    assert answer.status == 404
    assert text in answer.text


def test_rows_can_be_ticked_and_compared(client: Client, ranked):
    page = Page(client.get(BOARD))
    assert page.attributes("name").count("k") == 3
    ids = [str(one.submission_id) for one in ranked]
    answer = client.get("/compare/", {"k": ids})
    assert answer.status_code == 302
    assert answer["Location"] == f"/compare/?a={ids[0]}&b={ids[1]}&c={ids[2]}"


def test_page_api_and_csv_have_the_same_numbers(client: Client, ranked):
    page = Page(client.get(BOARD))
    told = client.get("/api/v1/boards/h200/gemm_n7168_k5120/").json()
    lines = client.get("/boards/h200/gemm_n7168_k5120.csv").content.decode().splitlines()
    rows = list(csv.DictReader(lines))
    assert told["row_count"] == len(told["rows"]) == len(rows) == 3
    for one, row in zip(told["rows"], rows, strict=True):
        band = one["rank_band"]
        assert (row["rank"], row["submission"]) == (str(one["rank"]), one["id"])
        assert (row["best_rank"], row["worst_rank"]) == (str(band["best"]), str(band["worst"]))
        assert (float(row["speedup"]), float(row["latency_ns"])) == (
            one["speedup"],
            one["latency_ns"],
        )
        built = one["resources"]
        assert (row["registers"], row["shared_bytes"]) == (
            str(built["registers"]),
            str(built["shared_bytes"]),
        )
        assert built == {"registers": 168, "shared_bytes": 1024, "spills": True}
        shown = f"{one['rank']} {band['best']}\N{EN DASH}{band['worst']} {one['name']}"
        shown = shown if band["best"] < band["worst"] else f"{one['rank']} {one['name']}"
        assert f"{shown} {one['entrant']['display_name']} {one['speedup']:.3f}" in page.text
