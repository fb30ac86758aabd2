"""The operator's pages: every list opens, nothing can be edited, a token can be revoked."""

import pytest

from leaderboard.models import ApiToken
from leaderboard.services.tokens import token_create
from tests.leaderboard import factories

LISTS = ("submission", "attempt", "evaluation", "apitoken", "worker", "auditentry", "entrant")


@pytest.fixture
def operator(client, carol):
    carol.is_superuser = True
    carol.save()
    client.force_login(carol)
    return client


@pytest.mark.parametrize("name", LISTS)
def test_a_list_opens_and_offers_no_change(operator, problems, alice_entrant, name):
    problem = problems["gemm_n256_k256"]
    one = factories.submission(by=alice_entrant, problem=problem, target="host")
    factories.evaluated(one, factories.stages(problem.record, "host"))
    assert operator.get(f"/admin/leaderboard/{name}/").status_code == 200
    assert operator.get(f"/admin/leaderboard/{name}/add/").status_code == 403


def test_a_token_can_be_revoked(operator, alice):
    token, _ = token_create(user=alice)
    body = {"action": "revoke", "_selected_action": [token.pk]}
    operator.post("/admin/leaderboard/apitoken/", body)
    assert ApiToken.objects.get(pk=token.pk).revoked_at is not None


def test_others_see_nothing(client, alice):
    client.force_login(alice)
    assert client.get("/admin/leaderboard/apitoken/").status_code == 302
