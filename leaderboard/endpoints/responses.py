"""OpenAI's responses API: the whole reply comes in the stream's last event."""

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
    bad_reply,
    count,
    cut_short,
    joined,
    mapping,
    mappings,
    word,
)

_LAST = ("response.completed", "response.incomplete", "response.failed")
_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def fields(
    endpoint: Endpoint, messages: Sequence[Message], parameters: Parameters, label: str
) -> dict[str, Any]:
    """Keyword arguments of the call, without `stream`."""
    found: dict[str, Any] = {}
    for ours, theirs in (
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("max_tokens", "max_output_tokens"),
    ):
        if (value := getattr(parameters, ours)) is not None:
            found[theirs] = value
    if parameters.reasoning_effort is not None:
        found["reasoning"] = {"effort": parameters.reasoning_effort, "summary": "auto"}
    if label:
        found["user"] = label
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    if system:
        found["instructions"] = system
    return {
        "model": endpoint.model,
        "input": [
            {"role": message.role, "content": message.content}
            for message in messages
            if message.role != "system"
        ],
        **found,
        "extra_body": dict(parameters.extra_body),
    }


def adapted(sent: dict[str, Any], error: EndpointError) -> dict[str, Any] | None:
    """The same call without reasoning summaries, which some accounts may not have."""
    reasoning = mapping(sent.get("reasoning"))
    if "summar" in error.message and "summary" in reasoning:
        return {**sent, "reasoning": {"effort": reasoning.get("effort")}}
    return None


def assemble(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The response of the last event. Raises EndpointError for an error, and a stream cut short."""
    seen = False
    for event in events:
        seen = True
        if event.get("type") == "error":
            raise Problem.of_json(None, event).error()
        if event.get("type") in _LAST:
            return mapping(event.get("response"))
    raise cut_short() if seen else bad_reply("the endpoint's stream held no answer: no events")


def read(whole: dict[str, Any]) -> Parts:
    """The answer of a whole reply. Raises EndpointError where there is none."""
    if whole.get("error"):
        raise Problem.of_json(None, whole).error()
    if whole.get("status") not in ("completed", "incomplete"):
        seen = word(whole.get("status")) or "no status"
        raise bad_reply(f"the endpoint's response is not complete: {seen}")
    output = list(mappings(whole.get("output")))
    content = [
        part
        for item in output
        if item.get("type") == "message"
        for part in mappings(item.get("content"))
    ]
    return Parts(
        text=joined(part.get("text") or part.get("refusal") for part in content),
        reasoning=_thought(item for item in output if item.get("type") == "reasoning"),
        finish_reason=_finish(whole, content),
        usage=_usage(mapping(whole.get("usage"))),
    )


def _finish(whole: dict[str, Any], content: list[dict[str, Any]]) -> str | None:
    if whole.get("status") == "incomplete":
        reason = word(mapping(whole.get("incomplete_details")).get("reason"))
        return _FINISH.get(reason or "", reason)
    refused = any(part.get("type") == "refusal" for part in content)
    return "content_filter" if refused else "stop"


def _thought(items: Iterable[dict[str, Any]]) -> str:
    """Summaries, or the reasoning itself where a server gives it; paragraphs between them."""
    texts = [
        part.get("text")
        for item in items
        for part in (*mappings(item.get("summary")), *mappings(item.get("content")))
    ]
    return joined(["\n\n".join(text for text in texts if isinstance(text, str))])


def _usage(usage: dict[str, Any]) -> Usage:
    said = mapping(usage.get("output_tokens_details"))
    asked = mapping(usage.get("input_tokens_details"))
    return Usage(
        prompt_tokens=count(usage.get("input_tokens")),
        completion_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(said.get("reasoning_tokens")),
        cached_tokens=count(asked.get("cached_tokens")),
    )
