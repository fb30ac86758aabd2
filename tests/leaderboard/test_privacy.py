"""What caches and crawlers may keep of the pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

PERSONAL = ("/", "/submissions/", "/submissions/mine/", "/submit/", "/nothing-here/")


@pytest.mark.parametrize("path", PERSONAL)
def test_no_shared_cache_keeps_a_page_of_somebody_signed_in(
    client: Client, alice: User, problems, path
):
    client.force_login(alice)
    answer = client.get(path)
    assert {"private", "no-cache"} <= set(answer["Cache-Control"].split(", "))


def test_the_page_that_shows_a_secret_is_stored_nowhere(client: Client, alice: User):
    client.force_login(alice)
    assert "no-store" in client.get("/account/")["Cache-Control"]


def test_a_visitors_page_may_be_kept(client: Client, problems):
    assert "private" not in client.get("/submissions/").headers.get("Cache-Control", "")


def test_crawlers_are_kept_from_the_api(client: Client):
    answer = client.get("/robots.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert "Disallow: /api/" in answer.content.decode()
