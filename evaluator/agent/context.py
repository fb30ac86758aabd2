"""Which earlier turns a model sees again: the context policies of the PTXBench paper's agent.

A `<think>` block that a server left in an answer is reasoning. It is stored with its turn, but not
sent again: servers that separate reasoning do not send theirs either, and models are trained so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluator.agent.messages import Message
from evaluator.agent.thinking import split_thinking

NO_ANSWER = "(no answer)"


class ContextPolicy(StrEnum):
    """FULL: every turn; LATEST_PAIR: the newest turn; SINGLE_USER: all turns in one message."""

    FULL = "full"
    LATEST_PAIR = "latest-pair"
    SINGLE_USER = "single-user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A finished turn: the model's answer as it came, and what we said to it."""

    answer: str
    feedback: str


def assemble(
    base: Sequence[Message], turns: Sequence[Exchange], policy: ContextPolicy | str
) -> tuple[Message, ...]:
    """The messages of the next call: base messages (system, user), then turns by the policy.

    Roles alternate and the last one is the user's. Turns that were excluded are not among `turns`.
    Raises ValueError for an unknown policy, or a base that is not (system, user).
    """
    policy = ContextPolicy(policy)
    roles = [message.role for message in base]
    if roles != ["system", "user"]:
        raise ValueError(f"a base has a system and a user message; seen: {', '.join(roles)}")
    if policy is ContextPolicy.SINGLE_USER:
        return _joined(base, turns)
    shown = turns[-1:] if policy is ContextPolicy.LATEST_PAIR else turns
    return (*base, *(message for turn in shown for message in _pair(turn)))


def _pair(turn: Exchange) -> tuple[Message, Message]:
    return (
        Message(role="assistant", content=_answer_of(turn)),
        Message(role="user", content=turn.feedback),
    )


def _answer_of(turn: Exchange) -> str:
    """Endpoints refuse an empty message of the assistant."""
    return split_thinking(turn.answer).answer.strip() or NO_ANSWER


def _joined(base: Sequence[Message], turns: Sequence[Exchange]) -> tuple[Message, ...]:
    system, task = base
    if not turns:
        return (system, task)
    parts = [task.content.rstrip("\n")]
    for number, turn in enumerate(turns, start=1):
        parts.append(f"# Your answer {number}\n\n{_answer_of(turn)}")
        parts.append(f"# Result of answer {number}\n\n{turn.feedback}")
    return (system, Message(role="user", content="\n\n".join(parts)))
