"""Messages, their bytes, and what a model sees again under each context policy."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.agent.context import ContextPolicy, Exchange, assemble
from evaluator.agent.messages import Message, canonical_bytes, digest
from evaluator.agent.thinking import split_thinking

BASE = (Message(role="system", content="S"), Message(role="user", content="T\n"))
TURNS = (
    Exchange(answer="<think>why</think>\none", feedback="bad"),
    Exchange(answer="two", feedback="good"),
)


def told(policy: str, turns=TURNS) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in assemble(BASE, turns, policy)]


@pytest.mark.parametrize("policy", ContextPolicy)
def test_the_first_call_is_the_base_alone(policy):
    assert assemble(BASE, (), policy) == BASE


def test_full_shows_every_turn_without_its_reasoning():
    assert told("full") == [
        ("system", "S"),
        ("user", "T\n"),
        ("assistant", "one"),
        ("user", "bad"),
        ("assistant", "two"),
        ("user", "good"),
    ]


def test_latest_pair_shows_the_newest_turn_only():
    assert told("latest-pair")[2:] == [("assistant", "two"), ("user", "good")]


def test_single_user_joins_everything_in_one_message():
    system, user = told("single-user")
    assert system == ("system", "S")
    assert user == (
        "user",
        "T\n\n# Your answer 1\n\none\n\n# Result of answer 1\n\nbad"
        "\n\n# Your answer 2\n\ntwo\n\n# Result of answer 2\n\ngood",
    )


@pytest.mark.parametrize("answer", ["", " \n", "<think>only this", "<think>a</think>\n"])
def test_an_answer_of_nothing_becomes_words_since_endpoints_refuse_empty_messages(answer):
    turn = Exchange(answer=answer, feedback="Nothing came.")
    assert told("full", [turn])[2] == ("assistant", "(no answer)")


def test_an_unknown_policy_and_a_wrong_base_are_refused():
    with pytest.raises(ValueError, match="'last'"):
        assemble(BASE, TURNS, "last")
    with pytest.raises(ValueError, match="seen: user, system"):
        assemble(BASE[::-1], TURNS, "full")


TEXTS = st.text(max_size=20)


@given(
    st.lists(st.builds(Exchange, answer=TEXTS, feedback=TEXTS), max_size=5),
    st.sampled_from(ContextPolicy),
)
def test_equal_turns_give_equal_bytes_and_roles_alternate(turns, policy):
    messages = assemble(BASE, turns, policy)
    assert canonical_bytes(messages) == canonical_bytes(assemble(BASE, list(turns), policy))
    assert [message.role for message in messages[1::2]] == ["user"] * len(messages[1::2])
    assert messages[-1].role == "user"


def test_the_bytes_are_canonical_json_and_the_digest_is_theirs():
    messages = [Message(role="user", content="ü\n")]
    assert canonical_bytes(messages) == '[{"content":"ü\\n","role":"user"}]'.encode()
    assert digest(messages) == "c96e63a5ea16a0b7746d92dc0eebda23fb8a4670c1023f03bf41c446566cf471"


def test_a_lone_surrogate_becomes_a_replacement_character():
    message = Message(role="assistant", content="a\ud800b\N{GRINNING FACE}")
    assert message.content == "a\N{REPLACEMENT CHARACTER}b\N{GRINNING FACE}"
    assert json.loads(canonical_bytes([message]))[0]["content"] == message.content


@pytest.mark.parametrize(
    ("text", "answer", "reasoning", "is_open"),
    [
        ("plain", "plain", "", False),
        ("<think>a</think>b", "b", "a", False),
        ("<THINK>a</think>b", "b", "a", False),
        ("x\n<thinking>\na\n</thinking>\ny\n<thought>c</thought>z", "x\n\ny\nz", "a\n\nc", False),
        ("a\n</think>\nb", "\nb", "a", False),
        ("<think>a", "", "a", True),
        ("see <think> and </think> here", "see <think> and </think> here", "", False),
        ("<think>a</thinking>b", "", "a</thinking>b", True),
    ],
)
def test_reasoning_between_tags_is_split_off(text, answer, reasoning, is_open):
    seen = split_thinking(text)
    assert (seen.answer, seen.reasoning, seen.open) == (answer, reasoning, is_open)
