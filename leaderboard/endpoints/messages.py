"""Anthropic's messages API, and servers that speak it: content comes in blocks."""

from collections.abc import Iterable, Sequence
from typing import Any

from evaluator.agent.messages import Message
from leaderboard.endpoints.classification import Problem
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError
from leaderboard.endpoints.parameters import Parameters
from leaderboard.endpoints.replies import Usage
from leaderboard.endpoints.shapes import (
    Parts,
    Text,
    bad_reply,
    count,
    cut_short,
    joined,
    mapping,
    mappings,
    word,
)

DEFAULT_MAX_TOKENS = 32_000  # the API wants a number; a run that wants another gives it
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


def fields(
    endpoint: Endpoint, messages: Sequence[Message], parameters: Parameters, label: str
) -> dict[str, Any]:
    """Keyword arguments of the call, without `stream`."""
    asked = parameters.model_dump(exclude_none=True)
    found: dict[str, Any] = {}
    if parameters.thinking is not None:
        found["thinking"] = asked["thinking"]
    if parameters.stop:
        found["stop_sequences"] = list(parameters.stop)
    if parameters.reasoning_effort is not None:
        found["output_config"] = {"effort": parameters.reasoning_effort}
    if label:
        found["metadata"] = {"user_id": label}
    if system := "\n\n".join(each.content for each in messages if each.role == "system"):
        found["system"] = system
    # the client has no arguments for these any more; older models and other servers take them
    sampling = {name: asked[name] for name in ("temperature", "top_p", "top_k") if name in asked}
    return {
        "model": endpoint.model,
        "max_tokens": parameters.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": [
            {"role": each.role, "content": each.content}
            for each in messages
            if each.role != "system"
        ],
        **found,
        "extra_body": {**sampling, **parameters.extra_body},
    }


def adapted(sent: dict[str, Any], error: EndpointError) -> dict[str, Any] | None:
    """This API has one dialect."""
    return None


def assemble(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Events of a stream to one whole reply. Raises EndpointError for one that is cut short."""
    whole: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    blocks: dict[int, tuple[str, Text]] = {}
    for event in events:
        match event.get("type"):
            case "message_start":
                whole = dict(mapping(event.get("message")))
                usage |= mapping(whole.get("usage"))
            case "content_block_start":
                _start(blocks, event)
            case "content_block_delta":
                _grow(blocks, event)
            case "message_delta":
                whole |= mapping(event.get("delta"))
                usage |= {k: v for k, v in mapping(event.get("usage")).items() if v is not None}
    if not whole and not blocks:
        raise bad_reply("the endpoint's stream held no answer: no events")
    if whole.get("stop_reason") is None:
        raise cut_short()
    content = [{"type": kind, kind: str(text)} for _, (kind, text) in sorted(blocks.items())]
    return {**whole, "content": content, "usage": usage}


def _start(blocks: dict[int, tuple[str, Text]], event: dict[str, Any]) -> None:
    block = mapping(event.get("content_block"))
    kind = word(block.get("type")) or "text"
    text = Text()
    text.add(block.get(kind))
    blocks[_index(event)] = (kind, text)


def _grow(blocks: dict[int, tuple[str, Text]], event: dict[str, Any]) -> None:
    delta = mapping(event.get("delta"))
    kind = (word(delta.get("type")) or "").removesuffix("_delta")
    if kind in ("text", "thinking"):
        _, text = blocks.setdefault(_index(event), (kind, Text()))
        text.add(delta.get(kind))


def _index(event: dict[str, Any]) -> int:
    return count(event.get("index")) or 0


def read(whole: dict[str, Any]) -> Parts:
    """The answer of a whole reply. Raises EndpointError where there is none."""
    if whole.get("type") == "error" or whole.get("error"):
        raise Problem.of_json(None, whole).error()
    if not isinstance(whole.get("content"), list):
        raise bad_reply("the endpoint's reply holds no answer: no content")
    blocks = list(mappings(whole["content"]))
    reason = word(whole.get("stop_reason"))
    return Parts(
        text=joined(block.get("text") for block in blocks if block.get("type") == "text"),
        reasoning=joined(
            block.get("thinking") for block in blocks if block.get("type") == "thinking"
        ),
        finish_reason=_FINISH.get(reason or "", reason),
        usage=_usage(mapping(whole.get("usage"))),
    )


def _usage(usage: dict[str, Any]) -> Usage:
    """`input_tokens` leaves out what came from the cache or went there; ours counts everything."""
    cached = count(usage.get("cache_read_input_tokens"))
    fresh = count(usage.get("input_tokens"))
    made = count(usage.get("cache_creation_input_tokens"))
    details = mapping(usage.get("output_tokens_details"))
    return Usage(
        prompt_tokens=None if fresh is None else fresh + (cached or 0) + (made or 0),
        completion_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(details.get("thinking_tokens", details.get("reasoning_tokens"))),
        cached_tokens=cached,
    )
