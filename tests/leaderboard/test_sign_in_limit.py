"""Guessing passwords ends after ten failures for a name from an address, and hurts nobody else."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import timezone

from leaderboard.models import SignInFailure
from tests.leaderboard.reading import Page

RIGHT = "correct horse battery"


def sign_in(client: Client, name: str = "alice", password: str = "guess", **more):
    return client.post("/sign-in/", {"username": name, "password": password}, **more)


def fail(client: Client, times: int, **more) -> None:
    for _ in range(times):
        assert sign_in(client, **more).status_code == 200


def test_the_eleventh_guess_is_not_tried_and_says_how_long_to_wait(client, alice):
    fail(client, 10)
    answer = sign_in(client, password=RIGHT)
    assert answer.status_code == 429
    assert 890 <= int(answer["Retry-After"]) <= 901
    text = Page(answer).text
    assert "10 sign-ins for this name failed from your address within 15 minutes" in text
    assert "try again in 15 minutes" in text
    assert "_auth_user_id" not in client.session


def test_a_refused_guess_makes_the_wait_no_longer(client, alice):
    fail(client, 10)
    for _ in range(5):
        sign_in(client)
    assert SignInFailure.objects.count() == 10


def test_after_the_wait_the_right_password_opens_and_the_count_starts_anew(client, alice):
    fail(client, 10)
    SignInFailure.objects.update(failed_at=timezone.now() - timedelta(minutes=15))
    assert sign_in(client, password=RIGHT).status_code == 302
    assert SignInFailure.objects.count() == 0


def test_nine_failures_and_the_right_password_leave_nothing_behind(client, alice):
    fail(client, 9)
    assert sign_in(client, password=RIGHT).status_code == 302
    assert SignInFailure.objects.count() == 0


def test_a_stranger_elsewhere_locks_nobody_out(client, alice):
    fail(client, 10, REMOTE_ADDR="203.0.113.9")
    assert sign_in(client, password=RIGHT).status_code == 302


def test_other_names_from_the_same_address_are_free(client, alice, bob):
    fail(client, 10)
    assert sign_in(client, name="bob", password=RIGHT).status_code == 302


@pytest.mark.parametrize("spelling", ["ALICE", "\uff41lice", "Alice"])
def test_spellings_of_a_name_count_together(client, alice, spelling):
    fail(client, 10)
    assert sign_in(client, name=spelling).status_code == 429


def test_names_that_do_not_exist_count_alike(client, db):
    fail(client, 10, name="zoe")
    assert sign_in(client, name="zoe").status_code == 429


def test_a_forged_forwarding_header_frees_nobody(client, alice, settings):
    fail(client, 10, HTTP_X_FORWARDED_FOR="198.51.100.1")
    assert sign_in(client, HTTP_X_FORWARDED_FOR="198.51.100.2").status_code == 429
    SignInFailure.objects.all().delete()
    settings.PTXBOARD_BEHIND_PROXY = True
    fail(client, 10, HTTP_X_FORWARDED_FOR="198.51.100.1, 192.0.2.7")
    forged = sign_in(client, HTTP_X_FORWARDED_FOR="198.51.100.2, 192.0.2.7")
    assert forged.status_code == 429
    assert sign_in(client, HTTP_X_FORWARDED_FOR="192.0.2.8").status_code == 200


def test_the_operators_pages_have_the_same_door(client, carol):
    answer = client.get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/sign-in/?next=%2Fadmin%2F"
    body = {"username": "carol", "password": "guess", "next": "/admin/"}
    assert client.post("/admin/login/", body).status_code == 302
    assert SignInFailure.objects.count() == 0
    assert "_auth_user_id" not in client.session
    done = client.post("/sign-in/", {**body, "password": RIGHT})
    assert done["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200


def test_the_operators_door_tells_authors_that_it_is_not_theirs(client, alice):
    client.force_login(alice)
    answer = client.get("/admin/", follow=True)
    assert answer.status_code == 403
    assert "the operator's" in Page(answer).text


@pytest.mark.django_db(transaction=True)
def test_of_thirty_guesses_at_once_ten_are_tried():
    User.objects.create_user("alice", password=RIGHT)

    def guess(number):
        try:
            return sign_in(Client(), password=f"guess {number}").status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(guess, range(30)))
    assert sorted(answers) == [200] * 10 + [429] * 20
