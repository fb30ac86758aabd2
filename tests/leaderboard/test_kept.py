"""Answers that are kept: given again for the same tag and address, and to nobody else."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from leaderboard.models import Evaluation
from leaderboard.services.evaluations import evaluation_correct
from leaderboard.services.standings_update import standing_update
from leaderboard.views.freshness import kernels_state
from leaderboard.views.kept import ANSWERS, KeptAnswers, kept
from tests.leaderboard import factories, run_factories


class Maker:
    def __init__(self, **cookies: str) -> None:
        self.count, self.cookies = 0, cookies

    def __call__(self) -> HttpResponse:
        self.count += 1
        answer = HttpResponse(f"answer {self.count}", content_type="text/plain")
        for name, value in self.cookies.items():
            answer.set_cookie(name, value)
        return answer


def ask(make: Maker, tag: str | None, path: str = "/a/", **cookies: str) -> bytes:
    request = RequestFactory().get(path)
    request.COOKIES.update(cookies)
    return kept(request, tag, make).content


def test_an_answer_is_made_once_for_its_tag_and_address():
    make = Maker()
    assert [ask(make, "x"), ask(make, "x")] == [b"answer 1", b"answer 1"]
    assert ask(make, "y") == b"answer 2"
    assert ask(make, "x", "/a/?page=2") == b"answer 3"
    assert ask(make, "x", theme="dark") == b"answer 4"
    assert ask(make, "x") == b"answer 1"


def test_of_many_who_ask_at_once_one_makes_it():
    make, slow = Maker(), Event()

    def slowly() -> HttpResponse:
        slow.wait(5)
        return make()

    with ThreadPoolExecutor(6) as pool:
        request = RequestFactory().get("/a/")
        asked = [pool.submit(kept, request, "x", slowly) for _ in range(6)]
        slow.set()
        assert [one.result().content for one in asked] == [b"answer 1"] * 6
    assert make.count == 1
    assert not ANSWERS._makers


def test_an_answer_that_cannot_be_made_leaves_the_place_free():
    def breaks() -> HttpResponse:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept(RequestFactory().get("/a/"), "x", breaks)
    assert ask(Maker(), "x") == b"answer 1"


def test_an_answer_without_a_tag_or_with_a_cookie_is_never_kept():
    make = Maker()
    assert [ask(make, None), ask(make, None)] == [b"answer 1", b"answer 2"]
    secret = Maker(session="alice")
    assert [ask(secret, "x"), ask(secret, "x")] == [b"answer 1", b"answer 2"]
    assert ANSWERS.byte_count == 0


def test_the_least_recently_used_goes_first_and_the_budget_holds():
    answers = KeptAnswers(most_bytes=10)
    answers.put("a", b"12345", "text/plain")
    answers.put("b", b"12345", "text/plain")
    answers.get("a")
    answers.put("c", b"123", "text/plain")
    assert answers.get("b") is None
    assert answers.get("a").content == b"12345"
    assert answers.byte_count == 8
    answers.put("large", b"0" * 11, "text/plain")
    assert answers.get("large") is None
    assert answers.byte_count == 8


@pytest.fixture
def run(problems, alice):
    made = run_factories.run(problems["gemm_n7168_k5120"], owner=alice, turns=4)
    run_factories.turn(run_factories.trajectory(made), kernel=factories.KERNEL, speedup=0.9)
    standing_update(run_factories.finish(made))
    return made


def test_a_board_of_models_follows_a_turn_and_a_correction(run, client, carol):
    first = client.get("/api/v1/boards/h200/").content
    assert client.get("/api/v1/boards/h200/").content == first
    evaluation = Evaluation.objects.get()
    evaluation_correct(evaluation=evaluation, valid=False, reason="a leak", user=carol)
    second = client.get("/api/v1/boards/h200/").json()
    assert second["rows"][0]["cells"]["gemm_n7168_k5120"]["any"]["best_speedup"]["eighth"] is None


def test_who_is_signed_in_never_gets_or_leaves_a_kept_page(run, client, alice):
    before = client.get("/boards/h200/").content
    client.force_login(alice)
    own = client.get("/boards/h200/").content
    assert b"alice" in own
    client.logout()
    assert b"Sign out" not in client.get("/boards/h200/").content
    assert b"Sign out" not in before


def test_the_state_of_kernels_changes_with_an_evaluation_and_a_correction(
    run, carol, problems, alice_entrant
):
    seen = [kernels_state()]
    problem = problems["gemm_n7168_k5120"]
    made = factories.submission(by=alice_entrant, problem=problem)
    factories.evaluated(made, factories.stages(problem.record))
    seen.append(kernels_state())
    newest = Evaluation.objects.order_by("-pk").first()
    evaluation_correct(evaluation=newest, valid=False, reason="a leak", user=carol)
    seen.append(kernels_state())
    assert len(set(seen)) == 3
