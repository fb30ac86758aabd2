from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from evaluator.records.base import sha256_hex
from leaderboard.models import ApiToken, AuditEntry
from leaderboard.services.tokens import token_create
from tests.leaderboard.reading import Page


def test_it_signs_in_and_goes_where_it_was_asked(client: Client, alice: User):
    data = {"username": "alice", "password": "correct horse battery", "next": "/account/"}
    assert client.post("/sign-in/", data)["Location"] == "/account/"


def test_it_does_not_lead_away_from_the_site(client: Client, alice: User):
    data = {"username": "alice", "password": "correct horse battery", "next": "https://evil.test/"}
    assert client.post("/sign-in/", data)["Location"] == "/"


def test_it_says_that_name_or_password_is_wrong(client: Client, alice: User):
    page = Page(client.post("/sign-in/", {"username": "alice", "password": "wrong"}))
    assert "Please enter a correct username and password." in page.text


def test_it_signs_out_by_post_only(client: Client, alice: User):
    client.force_login(alice)
    assert client.get("/sign-out/").status_code == 405
    client.post("/sign-out/")
    assert "_auth_user_id" not in client.session


def test_it_shows_a_new_token_once_and_keeps_its_digest_only(client: Client, alice: User):
    client.force_login(alice)
    page = Page(client.post("/account/", {"label": "laptop"}))
    token = ApiToken.objects.get()
    secret = next(word for word in page.text.split() if word.startswith("ptxs_"))
    assert sha256_hex(secret.encode()) == token.digest
    assert (token.user, token.label, token.scope) == (alice, "laptop", "submit")
    assert secret not in client.get("/account/").content.decode()


def test_it_revokes_ones_own_token_and_no_others(client: Client, alice: User, bob: User):
    client.force_login(alice)
    client.post("/account/", {"label": "laptop"})
    token = ApiToken.objects.get()
    address = reverse("token-revoke", args=[token.id])
    client.force_login(bob)
    assert client.post(address).status_code == 404
    client.force_login(alice)
    page = Page(client.post(address, follow=True))
    assert "was revoked; it opens nothing any more." in page.text
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_it_never_lets_a_cache_keep_the_account(client: Client, alice: User):
    client.force_login(alice)
    assert "no-store" in client.get("/account/")["Cache-Control"]


def test_it_notes_who_revoked_a_token(client: Client, alice: User):
    client.force_login(alice)
    client.post("/account/", {"label": "laptop"})
    token = ApiToken.objects.get()
    for _ in range(2):
        client.post(reverse("token-revoke", args=[token.id]))
    entry = AuditEntry.objects.get(action="token.revoked")
    assert (entry.actor, entry.subject) == ("alice", token.prefix)


def test_it_makes_no_more_than_fifty_tokens(client: Client, alice: User):
    client.force_login(alice)
    for number in range(50):
        token_create(user=alice, label=str(number))
    page = Page(client.post("/account/", {"label": "one more"}))
    assert "You have 50 tokens, the most there can be; revoke one." in page.text
    assert ApiToken.objects.count() == 50
