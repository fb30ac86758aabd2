"""Parameters of a run: checked when they come in, stored as JSON, the same when they come out."""

import pytest
from pydantic import ValidationError

from leaderboard.endpoints.parameters import Api, Parameters


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"temperature": 2.5}, "less than or equal to 2"),
        ({"temperature": float("nan")}, "finite number"),
        ({"top_p": -0.1}, "greater than or equal to 0"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "greater than or equal to 1024"),
        ({"reasoning_effort": "huge"}, "Input should be"),
        ({"stop": ["x"] * 17}, "17 stop sequences; at most 16"),
        ({"stop": [""]}, "at least 1 character"),
        ({"temprature": 1}, "Extra inputs are not permitted"),
        ({"extra_body": {"model": "x", "messages": []}}, "extra_body sets messages, model, which"),
        ({"extra_body": {"stream": False}}, "extra_body sets stream"),
        ({"extra_body": {"x": "y" * 20_000}}, "extra_body has 20008 bytes; at most 16384"),
        ({"extra_headers": {"Authorization": "x"}}, "header 'Authorization' may not be set"),
        ({"extra_headers": {"HOST": "x"}}, "header 'HOST' may not be set"),
        ({"extra_headers": {"x-api-key": "x"}}, "header 'x-api-key' may not be set"),
        ({"extra_headers": {"Content-Length": "1"}}, "may not be set; these may: anthropic-beta"),
        ({"extra_headers": {"X-Title": "a\r\nHost: b"}}, "needs printable ASCII"),
        ({"extra_headers": {"X-Title": "x" * 1025}}, "at most 1024 characters"),
        ({"seed": 2**63}, "less than 9223372036854775808"),
        ({"top_k": 10**9}, "less than or equal to 1000000"),
    ],
)
def test_a_wrong_parameter_says_what_fits(values, words):
    with pytest.raises(ValidationError) as caught:
        Parameters.model_validate(values)
    assert words in str(caught.value)


def test_parameters_survive_storage():
    given = Parameters.model_validate(
        {
            "temperature": 1,
            "stop": ["a", "b"],
            "thinking": {"type": "adaptive"},
            "extra_body": {"a": [1, None, {"b": True}]},
            "extra_headers": {"X-Title": "t"},
        }
    )
    assert Parameters.from_json(given.to_json()) == given
    assert given.extra_headers == {"x-title": "t"}


@pytest.mark.parametrize(
    ("api", "values", "misfits"),
    [
        (Api.CHAT, {"top_k": 4, "seed": 1, "stop": ["x"]}, 0),
        (Api.CHAT, {"thinking": {"type": "adaptive"}}, 1),
        (Api.RESPONSES, {"seed": 1, "stop": ["x"], "top_k": 4}, 3),
        (Api.MESSAGES, {"seed": 1, "presence_penalty": 0.0}, 2),
        (Api.MESSAGES, {"top_k": 4, "stop": ["x"]}, 0),
        (Api.MESSAGES, {"thinking": {"type": "enabled"}}, 1),
        (Api.MESSAGES, {"thinking": {"type": "adaptive", "budget_tokens": 2048}}, 1),
        (
            Api.MESSAGES,
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 2048},
            1,
        ),
    ],
)
def test_what_an_api_lacks_is_told_before_a_call(api, values, misfits):
    assert len(Parameters.model_validate(values).misfits(api)) == misfits
