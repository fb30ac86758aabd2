"""Calls that end well: what leaves for each API, and what comes back in one shape."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from evaluator.agent.messages import Message
from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.endpoint import BadEndpoint, Endpoint
from leaderboard.endpoints.messages import DEFAULT_MAX_TOKENS
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.replies import MAX_RAW_BYTES, Usage
from tests.endpoints.conftest import KEY, LIMITS, MESSAGES


@pytest.fixture
def answers(server, tmp_path: Path):
    """The scripted endpoint's first answer, with thinking."""
    (tmp_path / "default").mkdir()
    (tmp_path / "default/0.md").write_text("An answer ◆ of some length.\n" * 40)
    (tmp_path / "default/0.reasoning.md").write_text("Some thoughts.\n" * 60)
    return server


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", Api)
def test_an_answer_is_one_reply_whatever_the_api_and_the_stream(answers, api, stream):
    endpoint = Endpoint(api=api, base_url=answers.url, model="asked", key=SecretStr(KEY))
    reply = complete(endpoint, MESSAGES, Parameters(stream=stream), limits=LIMITS)
    assert reply.text == "An answer ◆ of some length.\n" * 40
    assert reply.reasoning == "Some thoughts.\n" * 60
    assert (reply.finish_reason, reply.model) == ("stop", "asked")
    thought = None if api is Api.MESSAGES else 225
    assert reply.usage.model_copy(update={"prompt_tokens": 0}) == Usage(
        prompt_tokens=0, completion_tokens=506, reasoning_tokens=thought, cached_tokens=0
    )
    assert json.loads(reply.sent)["stream"] is stream
    assert "An answer" in json.dumps(json.loads(reply.raw))


@pytest.mark.parametrize(
    ("api", "header"), [(Api.CHAT, "Authorization"), (Api.MESSAGES, "X-Api-Key")]
)
def test_nothing_leaves_but_the_headers_of_the_call(ask, server, monkeypatch, api, header):
    """The official clients read the environment; none of that may reach a user's endpoint."""
    for name in ("API_KEY", "AUTH_TOKEN", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "https://canary.invalid")
        monkeypatch.setenv(f"ANTHROPIC_{name}", "https://canary.invalid")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Canary: canary\nHost: canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: canary\nHost: canary")
    quirk = "plain" if api is Api.CHAT else "messages_thinking"
    ask(quirk, api, extra_headers={"X-Title": "ptxboard"})
    headers, _ = server.seen[0]
    assert "canary." not in repr(headers)
    expected = {"Host", "Accept", "Accept-Encoding", "Content-Type", "Content-Length"}
    expected |= {"User-Agent", "X-Title", header}
    if api is Api.MESSAGES:
        expected.add("Anthropic-Version")
    assert {name.title() for name in headers} == expected
    assert KEY in headers[header]
    assert headers["Accept-Encoding"] == "identity"


def test_an_endpoint_without_a_key_gets_no_authorization(ask, server):
    ask("plain", key="")
    assert not {"Authorization", "X-Api-Key"} & set(server.seen[0][0])


def test_every_parameter_of_chat_goes_out_under_its_name(ask, server):
    ask(
        "plain",
        label="run/no-schedule/1",
        temperature=0.5,
        top_p=0.9,
        top_k=20,
        min_p=0.1,
        presence_penalty=1.5,
        frequency_penalty=-0.5,
        repetition_penalty=1.05,
        max_tokens=100,
        reasoning_effort="high",
        stop=["END"],
        seed=7,
        send_labels=True,
        extra_body={"chat_template_kwargs": {"enable_thinking": True}},
    )
    assert server.seen[0][1] == {
        "model": "asked",
        "messages": [
            {"role": "system", "content": "You write kernels."},
            {"role": "user", "content": "Write one."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.1,
        "presence_penalty": 1.5,
        "frequency_penalty": -0.5,
        "repetition_penalty": 1.05,
        "max_tokens": 100,
        "reasoning_effort": "high",
        "stop": ["END"],
        "seed": 7,
        "user": "run/no-schedule/1",
        "chat_template_kwargs": {"enable_thinking": True},
    }


def test_every_parameter_of_messages_goes_out_under_its_name(ask, server):
    ask(
        "messages_thinking",
        Api.MESSAGES,
        label="run/no-schedule/1",
        temperature=1,
        top_p=0.9,
        top_k=20,
        max_tokens=5000,
        reasoning_effort="max",
        thinking={"type": "enabled", "budget_tokens": 2000},
        stop=["END"],
        send_labels=True,
        extra_body={"service_tier": "auto"},
    )
    assert server.seen[0][1] == {
        "model": "asked",
        "system": "You write kernels.",
        "messages": [{"role": "user", "content": "Write one."}],
        "stream": True,
        "temperature": 1,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 5000,
        "output_config": {"effort": "max"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "stop_sequences": ["END"],
        "metadata": {"user_id": "run/no-schedule/1"},
        "service_tier": "auto",
    }


def test_messages_always_names_a_limit_and_thinking_may_be_adaptive(ask, server):
    ask("messages_thinking", Api.MESSAGES, thinking={"type": "adaptive"})
    body = server.seen[0][1]
    assert body["max_tokens"] == DEFAULT_MAX_TOKENS
    assert body["thinking"] == {"type": "adaptive"}


def test_every_parameter_of_responses_goes_out_under_its_name(ask, server):
    ask(
        "responses_incomplete",
        Api.RESPONSES,
        label="run/no-schedule/1",
        temperature=0.5,
        top_p=0.9,
        max_tokens=100,
        reasoning_effort="low",
        send_labels=True,
        extra_body={"store": False},
    )
    assert server.seen[0][1] == {
        "model": "asked",
        "instructions": "You write kernels.",
        "input": [{"role": "user", "content": "Write one."}],
        "stream": True,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 100,
        "reasoning": {"effort": "low", "summary": "auto"},
        "user": "run/no-schedule/1",
        "store": False,
    }


def test_a_label_stays_here_unless_it_is_asked_for(ask, server):
    ask("plain", label="run/no-schedule/1")
    assert "user" not in server.seen[0][1]


def test_what_was_sent_is_kept_byte_for_byte(server):
    url = server.at("plain")
    endpoint = Endpoint(api=Api.CHAT, base_url=url, model="asked")
    message = Message(role="user", content='a "quoted" ◆ line\n\tand \x07 a bell \ud800')
    reply = complete(endpoint, [message], Parameters(), limits=LIMITS)
    assert len(reply.sent.encode()) == _length(server.seen[0][0])
    assert json.loads(reply.sent) == server.seen[0][1]


def _length(headers: dict[str, str]) -> int:
    return int({name.lower(): value for name, value in headers.items()}["content-length"])


@pytest.mark.parametrize(
    ("api", "base", "path"),
    [
        (Api.CHAT, "/v1", "/v1/chat/completions"),
        (Api.CHAT, "/v1/", "/v1/chat/completions"),
        (Api.CHAT, "/v1/chat/completions", "/v1/chat/completions"),
        (Api.CHAT, "/proxy/openai", "/proxy/openai/chat/completions"),
        (Api.RESPONSES, "/v1/responses", "/v1/responses"),
        (Api.MESSAGES, "", "/v1/messages"),
        (Api.MESSAGES, "/v1", "/v1/messages"),
        (Api.MESSAGES, "/v1/messages", "/v1/messages"),
    ],
)
def test_a_base_url_may_end_as_people_copy_it(answers, api, base, path):
    paths = []
    log = answers.RequestHandlerClass.log_request
    answers.RequestHandlerClass.log_request = lambda handler, *rest: paths.append(handler.path)
    try:
        url = answers.url.removesuffix("/v1") + base
        endpoint = Endpoint(api=api, base_url=url, model="asked")
        assert complete(endpoint, MESSAGES, Parameters(), limits=LIMITS).text
    finally:
        answers.RequestHandlerClass.log_request = log
    assert paths == [path]


def test_a_server_that_ignores_streaming_is_read_whole(ask, server):
    assert ask("ignores_stream").text == "whole"
    assert len(server.seen) == 1


def test_a_server_that_refuses_streaming_is_asked_without(ask, server):
    assert ask("refuses_stream").text == "whole"
    assert [body.get("stream") for _, body in server.seen] == [True, False]
    assert "stream_options" not in server.seen[1][1]


def test_a_server_that_refuses_stream_options_is_asked_without(ask, server):
    assert ask("refuses_stream_options").text == "fine"
    assert server.seen[1][1]["stream"] is True


def test_a_server_that_wants_the_newer_name_of_the_limit_gets_it(ask, server):
    assert ask("newer_limit_name", max_tokens=50).text == "fine"
    assert server.seen[1][1]["max_completion_tokens"] == 50


def test_summaries_that_an_account_may_not_have_are_left_out(ask, server):
    reply = ask("responses_without_summaries", Api.RESPONSES, reasoning_effort="low", stream=False)
    assert reply.text == "fine"
    assert server.seen[1][1]["reasoning"] == {"effort": "low"}


def test_reasoning_without_content_is_no_answer_but_is_kept(ask):
    """Field case O-33."""
    reply = ask("reasoning_only")
    assert (reply.text, reply.reasoning) == ("", "First I tile K by 64")
    assert reply.finish_reason == "length"
    assert reply.usage == Usage(prompt_tokens=9100, completion_tokens=4096, reasoning_tokens=4096)


def test_content_may_be_a_list_of_parts(ask):
    reply = ask("parts")
    assert (reply.text, reply.reasoning, reply.request_id) == ("one two", "hm", "req-7")


def test_a_stream_may_hold_comments_and_other_choices_and_late_usage(ask):
    reply = ask("names_reasoning")
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("done", "I think", "length")
    assert reply.usage == Usage(prompt_tokens=5, completion_tokens=7, cached_tokens=4)


def test_messages_bring_blocks_and_count_the_cache(ask):
    reply = ask("messages_thinking", Api.MESSAGES)
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("one two", "I think", "length")
    assert reply.usage == Usage(
        prompt_tokens=105, completion_tokens=7, reasoning_tokens=3, cached_tokens=90
    )


def test_a_response_without_text_has_its_summaries(ask):
    reply = ask("responses_incomplete", Api.RESPONSES)
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("", "one\n\ntwo", "length")


def test_a_refusal_is_an_answer(ask):
    reply = ask("filtered")
    assert (reply.text, reply.finish_reason) == ("I cannot", "content_filter")


def test_a_reply_of_nulls_is_an_empty_answer(ask):
    reply = ask("null_everywhere")
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("", "", None)


def test_counts_that_cannot_be_are_unknown(ask):
    assert ask("huge_counts").usage == Usage()


def test_a_long_raw_reply_is_cut_with_a_note(ask):
    reply = ask("a_megabyte")
    assert len(reply.text) == 1_000_000
    assert len(reply.raw.encode()) <= MAX_RAW_BYTES
    assert reply.raw.endswith(" bytes in all")


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("model", {"model": " "}),
        ("model", {"model": "x" * 201}),
        ("model", {"model": "a\nb"}),
        ("key", {"key": SecretStr("two words")}),
        ("key", {"key": SecretStr("line\r\nX-Evil: 1")}),
        ("key", {"key": SecretStr("schlüssel")}),
        ("key", {"key": SecretStr("x" * 5000)}),
    ],
)
def test_an_endpoint_that_cannot_be_is_refused_by_field(field, values):
    good = {"api": Api.CHAT, "base_url": "https://example.org/v1", "model": "m"}
    with pytest.raises(BadEndpoint) as caught:
        Endpoint(**{**good, **values})
    assert caught.value.field == field
    assert "Evil" not in str(caught.value)
