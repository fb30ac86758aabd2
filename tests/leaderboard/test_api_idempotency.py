"""A retry after a lost answer: one submission, one job, one place in the quota."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from rest_framework.test import APIClient

from leaderboard.models import Attempt, Job, Submission
from leaderboard.services.entrants import entrant_of
from leaderboard.services.tokens import token_create
from tests.leaderboard import factories
from tests.leaderboard.bodies import host_body, problem_of

URL = "/api/v1/submissions/"


def post(api, body, key=None):
    headers = {"Idempotency-Key": key} if key is not None else {}
    return api.post(URL, body, format="json", headers=headers)


def test_the_same_key_and_body_give_the_same_submission_with_200(problems, alice_api):
    first, again = (post(alice_api, host_body(), "7f0c") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert Job.objects.count() == 1


def test_the_same_key_with_another_body_is_409(problems, alice_api):
    first = post(alice_api, host_body(), "7f0c").json()
    told = problem_of(post(alice_api, host_body(source="int other;"), "7f0c"), 409)
    assert first["id"] in told["detail"]
    assert Submission.objects.count() == 1


def test_the_same_body_without_a_key_is_409_and_names_the_first(problems, alice_api):
    first = post(alice_api, host_body(), "7f0c").json()
    told = problem_of(post(alice_api, host_body(name="another name")), 409)
    assert told["duplicate_of"]["id"] == first["id"]
    assert told["duplicate_of"]["url"] == first["url"]


def test_keys_belong_to_their_author(problems, alice_api, bob_api):
    assert post(alice_api, host_body(), "7f0c").status_code == 201
    assert post(bob_api, host_body(), "7f0c").status_code == 201


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "é"])
def test_a_key_that_cannot_be_kept_is_400(problems, alice_api, key):
    assert "visible ASCII" in problem_of(post(alice_api, host_body(), key), 400)["detail"]


def test_a_key_of_an_invalid_body_is_not_used_up(problems, alice_api):
    problem_of(post(alice_api, host_body(target="h300"), "7f0c"), 400)
    assert post(alice_api, host_body(), "7f0c").status_code == 201


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", ["7f0c", None])
def test_eight_equal_requests_at_once_make_one_submission(key):
    factories.problems()
    user = factories.user()
    entrant_of(user=user)
    _, secret = token_create(user=user)
    body = json.dumps(host_body())

    def send(_):
        client = APIClient(raise_request_exception=False)
        client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
        headers = {"Idempotency-Key": key} if key else {}
        try:
            return client.generic(
                "POST", URL, body, content_type="application/json", headers=headers
            )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    repeated = 200 if key else 409
    assert sorted(answer.status_code for answer in answers) == sorted([201] + [repeated] * 7)
    assert Submission.objects.count() == Job.objects.count() == Attempt.objects.count() == 1
