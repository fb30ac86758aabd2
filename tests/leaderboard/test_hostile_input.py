"""Text made to harm, in places where it is not the text of a page: addresses, names, bodies."""

import json

import pytest
from django.test import Client

from leaderboard.models import Submission
from tests.leaderboard import factories
from tests.leaderboard.bodies import host_body, problem_of
from tests.leaderboard.reading import Page

URL = "/api/v1/submissions/"
SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "address",
    [
        f"/problems/{SCRIPT}/",
        f"/boards/{SCRIPT}/gemm_n256_k256/",
        f"/boards/h200/{SCRIPT}/",
        f"/submissions/?state={SCRIPT}",
        f"/{SCRIPT}/",
    ],
)
def test_an_error_page_shows_the_address_as_text(client: Client, problems, address):
    page = Page(client.get(address))
    assert page.status == 404
    assert SCRIPT not in page.html
    assert [data for tag, data in page.raw if tag == "script" and "alert" in data] == []


def test_an_error_of_the_api_is_json_that_no_browser_runs(visitor_api, problems):
    answer = visitor_api.get(f"/api/v1/problems/{SCRIPT}/")
    body = problem_of(answer, 404)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "'none'" in answer["Content-Security-Policy"]
    assert SCRIPT in json.dumps(body) or "alert" not in json.dumps(body)


def test_the_workers_page_shows_hostile_names_as_text(client: Client, db):
    factories.worker(f"h200-{SCRIPT}", ["gpu"], ["h200"], note=SCRIPT)
    page = Page(client.get("/workers/"))
    assert page.text.count(SCRIPT) >= 1
    assert SCRIPT not in page.html


@pytest.mark.parametrize(
    "path", ['x";filename=evil.html;".cpp', "<img src=x>.cpp", "\u202egpj.cpp", "a b.cpp"]
)
def test_a_download_is_named_by_us_whatever_the_file_was_called(
    client: Client, alice_api, problems, path
):
    body = {**host_body(source=None), "sources": [{"path": path, "content": "int x;"}]}
    answer = alice_api.post(URL, body, format="json")
    assert answer.status_code == 201, answer.content
    identifier = answer.json()["id"]
    response = client.get(f"/submissions/{identifier}/sources/1/")
    expected = f'attachment; filename="{identifier}_1.cpp.txt"'
    assert response["Content-Disposition"] == expected
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a\ud800"},
        {"description": "a\ud800"},
        {"name": "a\x00"},
        {"description": "a\x00"},
        {"entry_point": "a\ud800.cpp::run"},
        {"sources": [{"path": "k\ud800.cpp", "content": "int x;"}], "source": None},
        {"sources": [{"path": "k.cpp", "content": "a\ud800"}], "source": None},
        {"sources": {"k.cpp": "int x;"}, "source": None},
        {"sources": ["int x;"], "source": None},
        {"sources": [{"path": 7, "content": "x"}], "source": None},
        {"sources": [{"path": "k.cpp"}], "source": None},
        {"sources": [], "source": None},
        {"\ud800": 1, "target": "h300"},
    ],
)
def test_text_that_no_database_can_hold_is_400(problems, alice_api, change):
    data = json.dumps({k: v for k, v in host_body(**change).items() if v is not None})
    answer = alice_api.generic("POST", URL, data, content_type="application/json")
    assert problem_of(answer, 400)["errors"]
    assert Submission.objects.count() == 0


def test_an_unknown_field_with_an_impossible_name_is_named(problems, alice_api):
    data = json.dumps({**host_body(), "\ud800": 1})
    answer = alice_api.generic("POST", URL, data, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["ignored_fields"] == ["\ud800"]


CLAIM = {
    "status": "PASSED",
    "correctness": {"max_absolute_error": 0.0, "max_relative_error": 0.0},
    "performance": {"latency_ms": 0.001, "reference_latency_ms": 1.0, "speedup_factor": 1000.0},
}


def test_an_evaluation_that_the_client_claims_is_not_taken(problems, alice_api):
    made = alice_api.post(
        URL, host_body(evaluation=CLAIM, verdict="PASSED", score=9.0), format="json"
    )
    assert made.status_code == 201
    seen = alice_api.get(made.json()["url"]).json()
    assert (seen["verdict"], seen["score"], seen["state"]) == (None, None, "QUEUED")
    assert sorted(made.json()["ignored_fields"]) == ["evaluation", "score", "verdict"]
    assert alice_api.get("/api/v1/boards/host/gemm_n256_k256/").json()["rows"] == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_trace_with_numbers_that_are_none_is_no_json(problems, alice_api, number):
    """Field case O-30, the body as it was sent."""
    text = (
        '{"definition":"gemm_a","solution":"s1",'
        '"workload":{"axes":{"M":8},"inputs":{},"uuid":"w1"},\n'
        ' "evaluation":{"status":"PASSED","correctness":{"max_absolute_error":' + number + "}}}"
    )
    answer = alice_api.generic("POST", URL, text, content_type="application/json")
    assert problem_of(answer, 400)["detail"] == f"not valid JSON: {number} at line 2"
    assert Submission.objects.count() == 0


def test_a_worker_cannot_store_a_number_that_is_none(problems, alice_api, machine):
    alice_api.post(URL, host_body(), format="json")
    order = machine.order()
    result = machine.results(order)[0].model_dump(mode="json")
    result["evidence"]["header_count"] = float("nan")
    text = json.dumps({"fence": order["fence"], "result": result})
    assert "NaN" in text
    answer = machine.client.generic(
        "POST",
        f"/api/v1/worker/attempts/{order['attempt']}/stages",
        text,
        content_type="application/json",
    )
    assert "NaN at line 1" in problem_of(answer, 400)["detail"]


def test_a_repeated_key_counts_once_against_the_limit(problems, alice_api, settings):
    """Field case O-31: a retry after a lost answer costs no second place."""
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 1
    for status in (201, 200, 200):
        answer = alice_api.post(
            URL, host_body(), format="json", headers={"Idempotency-Key": "7f0c"}
        )
        assert answer.status_code == status
    problem_of(alice_api.post(URL, host_body(source="int other;"), format="json"), 429)
    assert Submission.objects.count() == 1
