"""Boards by REST: rank, ties, baseline, what may stand there; and lists by cursor."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.models import Evaluation, Problem
from leaderboard.services import boards
from leaderboard.services.catalogue import catalogue_sync
from leaderboard.services.evaluations import evaluation_correct
from tests.leaderboard import factories
from tests.leaderboard.bodies import problem_of

BOARD = "/api/v1/boards/h200/gemm_n7168_k5120/"
EARLY = datetime(2026, 2, 28, 15, 30, tzinfo=UTC)


@pytest.fixture
def gemm(problems):
    return problems["gemm_n7168_k5120"]


def ranked(by, problem, speedup, *, name="kernel", created_at=EARLY, target="h200", **more):
    one = factories.submission(
        by=by, problem=problem, target=target, name=name, created_at=created_at
    )
    results = factories.stages(problem.record, target, speedup=speedup, **more)
    return factories.evaluated(one, results)


def rows(api, url=BOARD):
    return api.get(url).json()["rows"]


def test_equal_speedups_share_a_rank_and_the_earlier_comes_first(gemm, alice_entrant, visitor_api):
    for number, speedup in enumerate([0.8, 1.5, 1.5, 1.5, 0.9]):
        moment = EARLY - timedelta(minutes=number)
        ranked(alice_entrant, gemm, speedup, name=f"k{number}", created_at=moment)
    seen = [(row["rank"], row["name"], row["speedup"]) for row in rows(visitor_api)]
    assert seen == [
        (1, "k3", 1.5),
        (1, "k2", 1.5),
        (1, "k1", 1.5),
        (4, "k4", 0.9),
        (5, "k0", 0.8),
    ]


def test_a_row_has_score_spread_n_and_instructions(gemm, alice_entrant, visitor_api):
    one = ranked(alice_entrant, gemm, 0.94)
    (row,) = rows(visitor_api)
    assert row["id"] == str(one.pk)
    assert row["n"] == 150
    assert row["score"]["speedup_low"] < 0.94 < row["score"]["speedup_high"]
    assert row["score"]["scoring_version"] == "1"
    assert row["target_instructions"]["status"] == "executed"
    assert row["target_instructions"]["work_share"] == 1.0
    assert row["trust"] == "verified"
    assert row["entrant"]["slug"] == "alice"


def test_the_baseline_is_a_row_without_a_rank(gemm, alice_entrant, visitor_api):
    empty = visitor_api.get(BOARD).json()["baseline"]
    assert (empty["rank"], empty["latency_ns"], empty["n"]) == (None, None, None)
    assert empty["reason"].startswith("not measured yet")
    ranked(alice_entrant, gemm, 0.94, baseline_ns=800_000)
    ranked(alice_entrant, gemm, 0.95, baseline_ns=804_000)
    seen = visitor_api.get(BOARD).json()["baseline"]
    assert seen["latency_ns"] == 802_000
    assert seen["n"] == 300
    assert seen["version"] == "cuBLAS 13.0.2.14"
    assert seen["reason"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"trust": "self-reported"},
        {"trust": "published"},
        {"valid": False},
        {"scoring_version": "0"},
        {"target": "h100"},
    ],
)
def test_only_verified_valid_rows_of_this_version_and_target_stand_there(
    gemm, alice_entrant, visitor_api, change
):
    ranked(alice_entrant, gemm, 0.9)
    assert len(rows(visitor_api)) == 1
    Evaluation.objects.update(**change)
    assert rows(visitor_api) == []


def test_a_withdrawn_evaluation_leaves_the_board_and_comes_back(
    gemm, alice_entrant, carol, visitor_api
):
    one = ranked(alice_entrant, gemm, 0.9)
    evaluation = one.evaluations.get()
    reason = "clocks were not locked"
    evaluation_correct(evaluation=evaluation, valid=False, reason=reason, user=carol)
    assert rows(visitor_api) == []
    evaluation_correct(evaluation=evaluation, valid=True, reason="they were", user=carol)
    assert len(rows(visitor_api)) == 1
    assert [c.reason for c in evaluation.corrections.all()] == [reason, "they were"]


def test_a_new_title_keeps_the_board_and_a_new_tolerance_empties_it(
    gemm, alice_entrant, visitor_api
):
    ranked(alice_entrant, gemm, 0.9)
    record = gemm.record.model_copy(update={"title": "GEMM, renamed"})
    catalogue_sync(records=[record])
    assert len(rows(visitor_api)) == 1
    tighter = record.tolerance.model_copy(update={"atol": 1e-3})
    catalogue_sync(records=[record.model_copy(update={"tolerance": tighter})])
    assert rows(visitor_api) == []
    assert Problem.objects.filter(name=gemm.name).count() == 3
    assert Problem.objects.current().get(name=gemm.name).record.tolerance.atol == 1e-3


def test_a_board_of_many_rows_takes_as_many_queries_as_one_of_few(
    gemm, alice_entrant, visitor_api, django_assert_num_queries
):
    for number in range(3):
        ranked(alice_entrant, gemm, 0.9 + number / 100)
    with django_assert_num_queries(5):
        assert len(rows(visitor_api)) == 3
    for number in range(7):
        ranked(alice_entrant, gemm, 0.8 + number / 100)
    with django_assert_num_queries(5):
        assert len(rows(visitor_api)) == 10


@pytest.mark.parametrize("url", [f"{BOARD}?format=csv", f"{BOARD[:-1]}.csv"])
def test_the_csv_has_the_rows_at_full_precision_and_runs_no_formula(
    gemm, alice_entrant, visitor_api, url
):
    ranked(alice_entrant, gemm, 2 / 3, name='=HYPERLINK("http://x","y")')
    answer = visitor_api.get(url)
    assert answer["Content-Type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode()))
    assert float(row["speedup"]) == 2 / 3
    assert not row["kernel"].startswith("=")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("h300/gemm_n7168_k5120", "known targets: h200, h100, b200, host"),
        ("h200/gemm", "known problems: gemm_n7168_k5120"),
        ("host/gemm_n7168_k5120", "it is on: h200, h100, b200"),
    ],
)
def test_a_board_that_is_not_there_says_which_are(problems, visitor_api, path, part):
    assert part in problem_of(visitor_api.get(f"/api/v1/boards/{path}/"), 404)["detail"]


def test_walking_the_list_gives_each_submission_once_even_with_equal_times(
    gemm, alice_entrant, visitor_api
):
    made = [
        str(factories.submission(by=alice_entrant, problem=gemm, created_at=EARLY).pk)
        for _ in range(60)
    ]
    url, seen = "/api/v1/submissions/?page_size=25", []
    while url:
        page = visitor_api.get(url).json()
        seen += [row["id"] for row in page["results"]]
        url = page["next"]
    assert len(seen) == 60
    assert set(seen) == set(made)


def test_the_list_filters_and_asks_as_often_for_many_as_for_few(
    gemm, alice_entrant, alice_api, bob, django_assert_num_queries
):
    for number in range(5):
        factories.submission(by=alice_entrant, problem=gemm, name=f"k{number}")
    factories.submission(by=bob.entrant, problem=gemm, name="bobs")
    alice_api.get("/api/v1/")  # notes that the token was used
    with django_assert_num_queries(2):  # the token, the rows
        names = [row["name"] for row in alice_api.get("/api/v1/submissions/").json()["results"]]
    assert len(names) == 6
    mine = alice_api.get("/api/v1/submissions/?mine=1").json()["results"]
    assert {row["entrant"]["slug"] for row in mine} == {"alice"}
    assert alice_api.get("/api/v1/submissions/?target=h100").json()["results"] == []
    (one,) = alice_api.get("/api/v1/submissions/?entrant=bob").json()["results"]
    assert one["name"] == "bobs"


@pytest.mark.parametrize(
    ("query", "allowed"),
    [
        ("state=done", ["QUEUED", "RUNNING", "DONE", "FAULTED", "CANCELLED"]),
        ("target=h300", ["h200", "h100", "b200", "host"]),
        ("verdict=GOOD", None),
        ("entrant=%00", None),
    ],
)
def test_a_filter_that_nothing_can_match_is_a_mistake(db, visitor_api, query, allowed):
    told = problem_of(visitor_api.get(f"/api/v1/submissions/?{query}"), 400)
    assert told["errors"][0]["pointer"] == query.partition("=")[0]
    if allowed:
        assert told["errors"][0]["allowed"] == allowed


@pytest.mark.parametrize("cursor", ["x", "cD0lMDA%3D", "cD14", "bz0xJnA9MjAyNg%3D%3D"])
def test_a_cursor_of_ones_own_making_is_404(gemm, alice_entrant, visitor_api, cursor):
    factories.submission(by=alice_entrant, problem=gemm)
    told = problem_of(visitor_api.get(f"/api/v1/submissions/?cursor={cursor}"), 404)
    assert told["detail"] == "the cursor is none of ours; begin again without it"


def test_a_long_board_is_cut_and_says_so(gemm, alice_entrant, visitor_api, monkeypatch):
    for number in range(3):
        ranked(alice_entrant, gemm, 0.9 + number / 100)
    monkeypatch.setattr(boards, "MOST_ROWS", 2)
    answer = visitor_api.get(BOARD).json()
    assert ([row["rank"] for row in answer["rows"]], answer["rows_cut"]) == ([1, 2], True)
    monkeypatch.setattr(boards, "MOST_ROWS", 3)
    assert visitor_api.get(BOARD).json()["rows_cut"] is False


def test_the_problems_come_in_order_with_prototypes_and_boards(problems, visitor_api):
    seen = visitor_api.get("/api/v1/problems/").json()
    assert [row["name"] for row in seen] == list(problems)
    first = seen[0]
    assert first["digest"] == problems[first["name"]].digest
    assert set(first["prototypes"]) == {"cuda/c", "cuda/tvm-ffi", "triton/c"}
    assert 'extern "C"' in first["prototypes"]["cuda/c"]
    assert first["boards"]["h200"].endswith(BOARD)
    one = visitor_api.get(f"/api/v1/problems/{first['name']}/").json()
    assert one == first
    problem_of(visitor_api.get("/api/v1/problems/none/"), 404)


def test_the_targets_say_how_many_workers_are_there(problems, visitor_api):
    factories.worker("a", ["gpu"], ["h200"], last_seen=datetime.now(UTC))
    factories.worker("b", ["gpu"], ["h200"], last_seen=datetime.now(UTC), state="unfit")
    factories.worker("c", ["gpu"], ["h200"], last_seen=EARLY)
    seen = {row["slug"]: row for row in visitor_api.get("/api/v1/targets/").json()}
    assert list(seen) == ["h200", "h100", "b200", "host"]
    assert seen["h200"]["workers_online"] == 1
    assert seen["h100"]["workers_online"] == 0
    assert seen["host"]["development"] is True


def test_the_root_publishes_the_limits(problems, visitor_api):
    limits = visitor_api.get("/api/v1/").json()["limits"]
    assert limits == {
        "body_bytes": 2 << 20,
        "source_bytes": 1 << 20,
        "source_files": 64,
        "in_flight_submissions": 20,
        "open_model_runs": 20,
        "parallel_trajectories": 16,
    }
