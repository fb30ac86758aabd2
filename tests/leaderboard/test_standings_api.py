"""Boards of models by REST: the same numbers in every form, and errors in words."""

import csv
import io
import xml.etree.ElementTree as ElementTree

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboard.models import ModelStanding
from leaderboard.services.standings import target_board
from leaderboard.services.standings_filters import BoardFilters
from leaderboard.services.standings_update import standing_update
from tests.leaderboard import factories, run_factories

GEMM, FORWARD = "gemm_n7168_k5120", "mha_with_lse_d128"
BOARD = "/api/v1/boards/h200/"
HOSTILE = '=HYPERLINK("https://evil.example")<script>alert(1)</script>\u202e\U0001f600'


def stand(problem, owner, model, *speedups):
    run = run_factories.run(
        problem, owner=owner, model=model, variants=("no-schedule", "split-k"), turns=4
    )
    for variant in ("no-schedule", "split-k"):
        place = run_factories.trajectory(run, 1, variant)
        broken = run_factories.failed(run, "compilation", "COMPILE_ERROR")
        for speedup in speedups:
            results = broken if speedup is None else None
            run_factories.turn(place, kernel=factories.KERNEL, speedup=speedup, results=results)
        speedups = (None,)
    run_factories.finish(run)
    standing_update(run)
    return run


@pytest.fixture
def rows(problems, alice):
    stand(problems[GEMM], alice, "opus", 0.5, 0.95)
    stand(problems[FORWARD], alice, "opus", 1.0)
    return stand(problems[GEMM], alice, HOSTILE[:100], 0.7)


def test_the_board_tells_what_the_service_tells(rows, visitor_api):
    body, board = visitor_api.get(BOARD).json(), target_board(target="h200")
    assert [row["key"] for row in body["rows"]] == [row.key for row in board.rows]
    for told, row in zip(body["rows"], board.rows, strict=True):
        assert (told["rank"], told["score"]) == (row.rank, row.score)
        assert set(told["cells"]) == set(row.cells)
        for name, cell in row.cells.items():
            seen = told["cells"][name]
            rates, bests = seen["any"]["correctness_rate"], seen["any"]["best_speedup"]
            assert rates == {
                "first": cell.rates.first,
                "fourth": cell.rates.fourth,
                "eighth": cell.rates.eighth,
            }
            assert bests["eighth"] == cell.bests.eighth
            assert seen["any"]["fast_p"] == list(cell.fast)
            assert seen["planned_turns"] == cell.planned_turns == 8


def test_a_row_says_what_it_covers_and_where_its_run_is(rows, visitor_api):
    first, second = visitor_api.get(BOARD).json()["rows"]
    assert first["coverage"] == {"problems": 2, "of": 2}
    assert (second["coverage"], second["complete"]) == ({"problems": 1, "of": 2}, False)
    url = second["cells"][GEMM]["newest_run"]
    assert visitor_api.get(url).json()["id"] == str(rows.pk)


def test_csv_has_a_line_a_cell_with_the_numbers_of_the_json(rows, visitor_api):
    body = visitor_api.get(BOARD).json()
    for url in ("/api/v1/boards/h200.csv", f"{BOARD}?format=csv"):
        answer = visitor_api.get(url)
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        lines = list(csv.DictReader(io.StringIO(answer.content.decode())))
        told = {
            (row["rank"], name): cell for row in body["rows"] for name, cell in row["cells"].items()
        }
        assert len(lines) == len(told) == 3
        for line in lines:
            cell = told[int(line["rank"]), line["problem"]]
            assert float(line["rate_4"]) == cell["any"]["correctness_rate"]["fourth"]
            assert float(line["best_8"]) == cell["any"]["best_speedup"]["eighth"]
            assert float(line["share"]) == cell["share"]


def test_no_cell_of_the_csv_is_a_formula(rows, visitor_api):
    lines = csv.DictReader(io.StringIO(visitor_api.get("/api/v1/boards/h200.csv").content.decode()))
    names = {line["name"] for line in lines}
    assert f"'{HOSTILE[:100]}" in names
    assert not any(name.startswith("=") for name in names)


def test_fast_p_gives_steps_bands_and_the_share_at_p(rows, visitor_api):
    body = visitor_api.get(f"{BOARD}{GEMM}/fast-p/?p=0.6").json()
    first, second = body["models"]
    assert (body["p"], body["at_most"]) == (0.6, 8)
    line = first["any"]
    assert first["entrant"]["display_name"] == "opus"
    assert (line["planned_turns"], line["correct_turns"], line["fast_p"]) == (8, 2, 1 / 8)
    assert line["over_variants"] == {"mean": 1 / 8, "low": 0, "high": 1 / 4}
    assert [step["share"] for step in line["steps"]] == [2 / 8, 1 / 8, 0]
    assert line["steps"][1]["p"] == pytest.approx(0.5)
    assert first["target_instructions"]["fast_p"] == 1 / 8
    assert second["any"]["best_speedup"] == pytest.approx(0.7)


def test_fast_p_without_evidence_of_instructions_is_null(rows, visitor_api):
    ModelStanding.objects.update(knows_instructions=False)
    model = visitor_api.get(f"{BOARD}{GEMM}/fast-p/").json()["models"][0]
    assert model["target_instructions"] is None


@pytest.mark.parametrize("path", ["", ".csv", f"/{GEMM}/fast-p/"])
def test_an_etag_spares_the_body_until_a_turn_closes(rows, visitor_api, path):
    url = "/api/v1/boards/h200" + (path or "/")
    tag = visitor_api.get(url)["ETag"]
    with CaptureQueriesContext(connection) as seen:
        again = visitor_api.get(url, HTTP_IF_NONE_MATCH=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert len(seen) <= 3
    standing_update(rows)
    assert visitor_api.get(url, HTTP_IF_NONE_MATCH=tag).status_code == 200


def test_other_filters_have_another_etag(rows, visitor_api):
    tags = {visitor_api.get(BOARD + query)["ETag"] for query in ("", "?p=0.5", "?format=csv")}
    assert len(tags) == 3


def test_the_badge_of_a_row_is_a_picture_without_script(rows, visitor_api):
    for row in visitor_api.get(BOARD).json()["rows"]:
        answer = visitor_api.get(row["badge_url"])
        assert answer["Content-Type"] == "image/svg+xml"
        picture = ElementTree.fromstring(answer.content)
        tags = {element.tag.rpartition("}")[2] for element in picture.iter()}
        assert tags == {"svg", "title", "rect", "g", "text"}
        assert f"#{row['rank']} Fast_0.9" in picture[0].text


def test_a_badge_of_reported_numbers_says_so(rows, visitor_api):
    ModelStanding.objects.update(trust="self-reported")
    row = visitor_api.get(f"{BOARD}?trust=self-reported").json()["rows"][0]
    assert "self-reported" in visitor_api.get(row["badge_url"]).content.decode()


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("h300/", 404, "There is no target 'h300'; known targets: h200, h100, b200, host."),
        ("h300.csv", 404, "There is no target 'h300'"),
        (f"h300/{GEMM}/fast-p/", 404, "There is no target 'h300'"),
        ("h200/softmax/fast-p/", 404, "There is no problem 'softmax'; known problems: gemm_"),
        (f"host/{GEMM}/fast-p/", 404, "is not offered on host; it is on: h200, h100, b200."),
        ("h200/?p=fast", 400, "p: 'fast' is no speedup"),
        (f"h200/{GEMM}/fast-p/?p=-1", 400, "p: '-1' is no speedup"),
        ("h200/?trust=ours&level=all", 400, "trust: there is no trust 'ours'"),
        ("h200/?language=%00", 400, "language: there is no language"),
        ("h200/badges/abc.svg", 404, "There is no row 'abc' on the board of h200."),
        ("h200/badges/abc.svg?p=x", 400, "p: 'x' is no speedup"),
    ],
)
def test_what_is_unknown_is_a_problem_in_words(problems, visitor_api, path, status, said):
    answer = visitor_api.get(f"/api/v1/boards/{path}")
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert said in answer.json()["detail"]


def test_an_empty_board_is_no_error(problems, visitor_api):
    body = visitor_api.get(BOARD).json()
    assert (body["rows"], body["updated_at"]) == ([], None)
    offered = [name for name, row in problems.items() if not row.development]
    assert [one["name"] for one in body["problems"]] == offered
    assert visitor_api.get(f"{BOARD}{GEMM}/fast-p/").json()["models"] == []


def test_the_addresses_are_in_the_schema(db, visitor_api):
    text = visitor_api.get("/api/schema/").content.decode()
    for path in ("boards/{target}/:", "boards/{target}/{problem}/fast-p/:", "badges/{key}.svg:"):
        assert path in text


def test_filters_of_the_answer_are_those_of_the_question(problems, visitor_api):
    told = visitor_api.get(f"{BOARD}?p=0.5&at_most=4&level=none&complete=1").json()["filters"]
    expected = BoardFilters(p=0.5, at_most=4, level="none", complete=True).to_json()
    assert told == expected | {"trust": ["verified", "reproduced"]}


def test_a_board_of_very_many_rows_is_cut_in_json_and_whole_in_csv(rows, visitor_api, monkeypatch):
    monkeypatch.setattr("leaderboard.api.standings.MOST_ROWS", 1)
    body = visitor_api.get(BOARD).json()
    assert (len(body["rows"]), body["row_count"], body["rows_cut"]) == (1, 2, True)
    assert len(visitor_api.get(f"{BOARD}?format=csv").content.splitlines()) == 4
