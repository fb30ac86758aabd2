"""The conversation in a request's body, whichever API it was written for, and what a turn added."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message; `is_rest` marks the end of a message whose beginning was sent before."""

    role: str
    text: str
    is_rest: bool = False


def conversation(body: bytes) -> tuple[Said, ...]:
    """Every message in order, the system's first; empty where the body holds none we can read."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        return ()
    system = value.get("system") or value.get("instructions")
    first = (Said(role="system", text=_text(system)),) if system else ()
    messages = value.get("messages", value.get("input", []))
    if isinstance(messages, str):
        return (*first, Said(role="user", text=messages))
    return (*first, *_messages(messages))


def parameters_of(body: bytes) -> dict[str, Any]:
    """What was sent beside the conversation; empty where the body is no JSON object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    told = ("messages", "input", "instructions", "system")
    return {key: value[key] for key in sorted(value) if key not in told}


def added(now: Sequence[Said], before: Sequence[Said]) -> tuple[Said, ...]:
    """What `now` says that `before` did not: later messages, or the rest of one that grew."""
    same = 0
    while same < min(len(now), len(before)) and now[same] == before[same]:
        same += 1
    rest = list(now[same:])
    if rest and same < len(before) and _grew(rest[0], before[same]):
        text = rest[0].text[len(before[same].text) :].lstrip("\n")
        rest[0] = Said(role=rest[0].role, text=text, is_rest=True)
    return tuple(rest)


def _grew(now: Said, before: Said) -> bool:
    return now.role == before.role and bool(before.text) and now.text.startswith(before.text)


def _messages(value: Any) -> tuple[Said, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        Said(role=str(one.get("role", "?"))[:20], text=_text(one.get("content")))
        for one in value
        if isinstance(one, dict)
    )


def _text(content: Any) -> str:
    """Text as it is, parts of text joined; anything else as its JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            _text(one.get("text") if isinstance(one, dict) else one) for one in content
        )
    return "" if content is None else json.dumps(content, ensure_ascii=False)
