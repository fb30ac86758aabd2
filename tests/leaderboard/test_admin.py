"""The operator's pages: every list opens, nothing can be edited, a token can be revoked."""

import pytest

from leaderboard.models import ApiToken, ModelRun
from leaderboard.services.tokens import token_create
from tests.leaderboard import factories
from tests.leaderboard.runs import KEY, RUNS, run_body

LISTS = (
    *("submission", "attempt", "evaluation", "apitoken", "worker", "auditentry", "entrant"),
    *("modelrun", "trajectory"),
)


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


def test_a_models_run_opens_without_its_key(operator, problems, alice_api, model):
    run = alice_api.post(RUNS, run_body(model.url), format="json").json()["runs"][0]
    answer = operator.get(f"/admin/leaderboard/modelrun/{run['id']}/change/")
    assert answer.status_code == 200
    held = ModelRun.objects.get().key_ciphertext
    assert held
    assert held not in answer.content.decode()
    assert KEY not in answer.content.decode()
