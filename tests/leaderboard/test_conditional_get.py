"""Boards answer 304 while nothing has changed, and anew as soon as anything has."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from leaderboard.models import Evaluation
from leaderboard.services.catalogue import catalogue_sync
from leaderboard.services.evaluations import evaluation_correct
from leaderboard.views import freshness
from tests.leaderboard import factories

PAGE = "/boards/h200/gemm_n7168_k5120/"
CSV = "/boards/h200/gemm_n7168_k5120.csv"
JSON = "/api/v1/boards/h200/gemm_n7168_k5120/"
FORMS = pytest.mark.parametrize("address", [PAGE, CSV, JSON, f"{JSON}?format=csv"])


@pytest.fixture
def gemm(problems):
    return problems["gemm_n7168_k5120"]


@pytest.fixture
def one(gemm, alice_entrant):
    return rank(alice_entrant, gemm, 0.9)


def rank(entrant, problem, speedup, **more):
    submission = factories.submission(by=entrant, problem=problem, **more)
    factories.evaluated(submission, factories.stages(problem.record, speedup=speedup))
    return submission


def again(client, address, answer):
    return client.get(address, headers={"If-None-Match": answer["ETag"]})


@FORMS
def test_an_unchanged_board_is_304_without_a_body(client, one, address):
    first = client.get(address)
    assert first.status_code == 200
    assert "no-cache" in first["Cache-Control"]
    second = again(client, address, first)
    assert (second.status_code, second.content) == (304, b"")
    assert second["ETag"] == first["ETag"]


@FORMS
def test_a_new_row_is_seen_at_once(client, one, gemm, alice_entrant, address):
    first = client.get(address)
    rank(alice_entrant, gemm, 0.95, source="// another")
    second = again(client, address, first)
    assert second.status_code == 200
    assert second["ETag"] != first["ETag"]


@FORMS
def test_a_correction_is_seen_at_once_each_way(client, one, carol, address):
    tags = [client.get(address)]
    for valid in (False, True):
        evaluation_correct(
            evaluation=one.evaluations.get(), valid=valid, reason="driver", user=carol
        )
        tags.append(again(client, address, tags[-1]))
        assert tags[-1].status_code == 200
    assert len({answer["ETag"] for answer in tags}) == 3


@FORMS
def test_another_board_has_another_tag(client, one, address):
    first = client.get(address)
    other = address.replace("gemm_n7168_k5120", "mha_with_lse_d128")
    assert again(client, other, first).status_code == 200


@FORMS
def test_a_new_title_or_a_new_site_makes_a_new_tag(client, one, gemm, address, monkeypatch):
    first = client.get(address)
    catalogue_sync(records=[gemm.record.model_copy(update={"title": "GEMM, renamed"})])
    second = again(client, address, first)
    assert second.status_code == 200
    monkeypatch.setattr(freshness, "site_digest", lambda: "0" * 64)
    assert again(client, address, second).status_code == 200


def test_the_forms_of_a_board_share_no_tag(client, one):
    assert len({client.get(address)["ETag"] for address in (PAGE, CSV, JSON)}) == 3


def test_a_304_costs_two_queries(client, one, django_assert_num_queries):
    first = client.get(PAGE)
    with django_assert_num_queries(2):
        again(client, PAGE, first)


def test_the_page_is_made_anew_when_its_age_reads_otherwise(client, one):
    Evaluation.objects.update(created_at=timezone.now() - timedelta(days=3))
    first = client.get(PAGE)
    assert again(client, PAGE, first).status_code == 304
    Evaluation.objects.update(created_at=timezone.now() - timedelta(days=4))
    assert again(client, PAGE, first).status_code == 200


def test_a_theme_has_a_tag_of_its_own(client: Client, one):
    first = client.get(PAGE)
    assert "Cookie" in first["Vary"]
    client.cookies["theme"] = "dark"
    assert again(client, PAGE, first).status_code == 200


def test_whoever_is_signed_in_gets_a_page_of_their_own(client: Client, one, alice: User):
    visitor = client.get(PAGE)
    client.force_login(alice)
    answer = client.get(PAGE, headers={"If-None-Match": visitor["ETag"]})
    assert answer.status_code == 200
    assert "ETag" not in answer
    assert "yours" in answer.content.decode()


def test_an_address_that_is_not_there_stays_404(client, one):
    first = client.get(JSON)
    assert again(client, JSON.replace("h200", "host"), first).status_code == 404
