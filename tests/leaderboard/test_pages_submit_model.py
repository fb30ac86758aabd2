"""The form that submits a model: over HTTP, with a scripted endpoint behind it."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from leaderboard.endpoints.keys import decrypt
from leaderboard.models import ModelRun
from leaderboard.run_forms import ModelRunForm
from leaderboard.services.model_runs.requests import RunRequest
from tests.leaderboard import factories
from tests.leaderboard.reading import Page
from tests.leaderboard.runs import KEY, Model

URL = "/model-runs/submit/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def signed_in(client: Client, alice: User, problems) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def valid(model: Model) -> Callable[..., dict[str, Any]]:
    def make(**more: Any) -> dict[str, Any]:
        return {
            "action": "start",
            "page": "p1",
            "api": "openai-chat",
            "base_url": model.url,
            "model": "scripted-1",
            "key": KEY,
            "problems": ["gemm_n256_k256"],
            "target": "host",
            "trajectories": "2",
            "turns": "3",
            "target_speedup": "1.1",
            "max_parallel": "2",
            "policy": "latest-pair",
            **more,
        }

    return make


def test_it_asks_a_visitor_to_sign_in(client: Client, problems):
    assert client.get(URL)["Location"] == f"/sign-in/?next={URL}"


def test_it_starts_a_run_and_leads_to_its_page(signed_in: Client, valid, alice: User):
    answer = signed_in.post(
        URL,
        valid(
            temperature="0.6",
            max_tokens="4096",
            reasoning_effort="low",
            extra_body='{"cache": true}',
            more='{"top_k": 20, "send_labels": true}',
            limit_turns="5",
            limit_cost_usd="2.5",
            price_prompt_usd="0",
            price_completion_usd="15",
        ),
    )
    run = ModelRun.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/model-runs/{run.pk}/")
    assert run.owner == alice
    assert run.parameters == {
        "temperature": 0.6,
        "max_tokens": 4096,
        "reasoning_effort": "low",
        "extra_body": {"cache": True},
        "top_k": 20,
        "send_labels": True,
    }
    assert (run.trajectory_count, run.turn_count, run.target_speedup) == (2, 3, 1.1)
    assert (run.policy, run.max_parallel, run.language) == ("latest-pair", 2, "cpp")
    assert (run.limit_turns, run.limit_tokens, run.limit_cost_usd) == (5, None, 2.5)
    assert (run.price_prompt_usd, run.price_completion_usd) == (0.0, 15.0)
    assert decrypt(run.key_ciphertext) == KEY
    assert KEY not in Page(signed_in.get(answer["Location"])).html


def test_several_problems_start_a_run_each(signed_in: Client, valid, problems):
    names = [name for name, one in problems.items() if "host" in one.targets][:2]
    answer = signed_in.post(URL, valid(problems=names), follow=True)
    runs = ModelRun.objects.order_by("problem__position")
    assert [one.problem.name for one in runs] == names
    assert len(set(runs.values_list("batch", flat=True))) == 1
    assert "2 model runs were started, one a problem." in Page(answer).text


def test_the_same_page_sent_twice_starts_its_runs_once(signed_in: Client, valid):
    first = signed_in.post(URL, valid())
    second = signed_in.post(URL, valid())
    assert first["Location"] == second["Location"]
    third = signed_in.post(URL, valid(turns="4"))
    assert third["Location"] != first["Location"]
    assert signed_in.post(URL, valid(page="p2"))["Location"] != first["Location"]
    assert ModelRun.objects.count() == 3


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"base_url": ""}, "base_url", "This field is required."),
        ({"base_url": "not an address"}, "base_url", "is not a URL such as"),
        ({"base_url": "http://10.0.0.7/v1"}, "base_url", "this site may not connect to 10.0.0.7"),
        ({"model": ""}, "model", "This field is required."),
        ({"key": "two words here"}, "key", "must be printable ASCII without spaces"),
        ({"temperature": "9"}, "temperature", "less than or equal to 2"),
        ({"temperature": "hot"}, "temperature", "Enter a number."),
        ({"extra_body": "{"}, "extra_body", "not valid JSON"),
        ({"extra_body": "[1]"}, "extra_body", "Write a JSON object"),
        ({"extra_body": '{"model": "x"}'}, "extra_body", "which the run itself sets"),
        ({"more": '{"top_kk": 1}'}, "more", "top_kk: Extra inputs are not permitted"),
        ({"more": '{"thinking": {"type": "adaptive"}}'}, "more", "has no parameter thinking"),
        ({"problems": []}, "problems", "This field is required."),
        ({"problems": ["gemm"]}, "problems", "There is no problem “gemm”. Pick from the list."),
        ({"problems": ["gemm_n7168_k5120"]}, "target", "gemm_n7168_k5120 is not offered there"),
        ({"language": "cuda"}, "language", "'cuda' is not allowed on host; allowed: cpp"),
        ({"level": "contracts"}, "level", "there is no knowledge pack for host"),
        ({"variants": ["multicast"]}, "variants", "is no variant of gemm_n256_k256 on host"),
        ({"trajectories": "0"}, "trajectories", "greater than or equal to 1"),
        ({"turns": "999"}, "turns", "less than or equal to 32"),
        ({"turns": ""}, "turns", "This field is required."),
        ({"limit_cost_usd": "5"}, "limit_cost_usd", "a limit in US dollars needs 'prices'"),
        ({"price_prompt_usd": "3"}, "price_completion_usd", "required"),
        ({"name": "x" * 101}, "name", "at most 100 characters"),
    ],
)
def test_errors_stand_beside_their_fields_and_only_the_key_is_lost(
    signed_in: Client, valid, changes, field, text
):
    answer = signed_in.post(URL, {**valid(name="kept name"), **changes})
    page = Page(answer)
    assert page.status == 422
    assert "Nothing was started." in page.text
    assert any(text in one for one in answer.context["form"].errors[field]), answer.context[
        "form"
    ].errors.as_json()
    assert text in page.text
    assert list(answer.context["form"].errors) == [field]
    values = {attrs.get("name"): attrs.get("value", "") for _, attrs in page.tags}
    assert values["key"] == ""
    assert KEY not in page.html
    if field != "name":
        assert values["name"] == "kept name"
    assert ModelRun.objects.count() == 0


def test_a_limit_of_runs_is_told(signed_in: Client, valid, settings):
    settings.PTXBOARD_RUN_LIMIT = 1
    signed_in.post(URL, valid())
    page = Page(signed_in.post(URL, valid(page="p2")))
    assert page.status == 422
    assert "1 of your model runs are open and 1 more were asked for, at most 1 at once" in page.text


def test_it_tests_a_connection_without_a_problem_chosen(signed_in: Client, valid, model: Model):
    model.say_text("last", "ready")
    body = valid(action="test", problems=[], turns="")
    page = Page(signed_in.post(URL, body))
    assert page.status == 200
    assert "The endpoint answers" in page.text
    assert "answered 'ready' after" in page.text
    assert "Nothing was started." not in page.text
    assert KEY not in page.html
    fragment = Page(signed_in.post(URL, body, headers=HTMX))
    assert "The endpoint answers" in fragment.text
    assert fragment.tags[0] == ("div", {"id": "check", "role": "status"})
    assert ModelRun.objects.count() == 0


def test_a_test_says_what_the_endpoint_refused(signed_in: Client, valid, model: Model):
    model.fail("0", '{"status": 401, "message": "bad key", "times": 9}')
    fragment = Page(signed_in.post(URL, valid(action="test"), headers=HTMX))
    assert "The endpoint did not answer" in fragment.text
    assert KEY not in fragment.html


def test_a_test_of_a_dead_port_ends_in_words(signed_in: Client, valid):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    body = valid(action="test", base_url=f"http://127.0.0.1:{port}/v1")
    assert "The endpoint did not answer" in Page(signed_in.post(URL, body, headers=HTMX)).text


def test_a_test_of_a_private_address_is_refused_beside_its_field(signed_in: Client, valid):
    answer = signed_in.post(URL, valid(action="test", base_url="http://169.254.169.254/latest"))
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["base_url"]
    fragment = Page(signed_in.post(URL, valid(action="test", base_url=""), headers=HTMX))
    assert "Not yet Base url: This field is required." in fragment.text


def test_it_estimates_calls_and_minutes(signed_in: Client, valid, machine):
    page = Page(signed_in.post(URL, valid(action="estimate")))
    assert page.status == 200
    assert "At most 6 calls of the model and about 4 minutes on host" in page.text
    assert "assumed, since nothing has run on host yet" in page.text
    assert ModelRun.objects.count() == 0


def test_an_estimate_is_made_from_what_ran_last(signed_in: Client, valid, problems):
    """factories.evaluated claims and ends each attempt a minute apart."""
    gemm = problems["gemm_n256_k256"]
    one = factories.submission(by=factories.entrant("Bob"), problem=gemm, target="host")
    factories.evaluated(one, factories.stages(gemm.record, "host", speedup=1.0))
    fragment = Page(signed_in.post(URL, valid(action="estimate"), headers=HTMX))
    assert "At most 6 calls of the model and about 6 minutes on host" in fragment.text
    assert "60 s a kernel: the mean of the last 1 on host" in fragment.text


def test_it_starts_from_the_link_of_a_problem(signed_in: Client):
    page = Page(signed_in.get(f"{URL}?problem=gemm_n256_k256&target=host"))
    ticked = [attrs["value"] for _, attrs in page.tags if "checked" in attrs]
    assert ticked == ["gemm_n256_k256"]
    chosen = [attrs["value"] for tag, attrs in page.tags if tag == "option" and "selected" in attrs]
    assert "host" in chosen


def test_the_key_field_is_a_password_that_nobody_completes(signed_in: Client):
    page = Page(signed_in.get(URL))
    key = next(attrs for _, attrs in page.tags if attrs.get("name") == "key")
    assert (key["type"], key["autocomplete"], key.get("value")) == ("password", "off", None)
    assert "no-store" in signed_in.get(URL)["Cache-Control"]


def test_it_needs_the_forgery_token(alice: User, problems, valid):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post(URL, valid()).status_code == 403


def test_every_parameter_of_the_service_has_its_place_on_the_form():
    body_fields = set(RunRequest.model_fields) - {"budget", "prices", "parameters", "binding"}
    assert body_fields <= set(ModelRunForm.base_fields)
