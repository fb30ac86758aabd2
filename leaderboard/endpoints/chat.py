"""OpenAI's chat completions, and the many servers that speak them nearly.

Reasoning comes as `reasoning_content` (vLLM, SGLang, DeepSeek), as `reasoning` (OpenRouter, newer
vLLM), or as parts of the content (Mistral). A stream is put together to the reply that the same
call would have brought unstreamed.
"""

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

_SAME_NAME = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "seed",
)
_NOT_OPENAIS = ("top_k", "min_p", "repetition_penalty")


def fields(
    endpoint: Endpoint, messages: Sequence[Message], parameters: Parameters, label: str
) -> dict[str, Any]:
    """Keyword arguments of the call, without `stream`."""
    asked = parameters.model_dump(exclude_none=True)
    found: dict[str, Any] = {name: asked[name] for name in _SAME_NAME if name in asked}
    if parameters.max_tokens is not None:
        found[_limit_name(endpoint)] = parameters.max_tokens
    if parameters.stop:
        found["stop"] = list(parameters.stop)
    if label:
        found["user"] = label
    extra = {name: asked[name] for name in _NOT_OPENAIS if name in asked}
    return {
        "model": endpoint.model,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        **found,
        "extra_body": {**extra, **parameters.extra_body},
    }


def _limit_name(endpoint: Endpoint) -> str:
    """OpenAI's newer models know only the newer name; most other servers know the older one."""
    return "max_completion_tokens" if "api.openai.com" in endpoint.base_url else "max_tokens"


def adapted(sent: dict[str, Any], error: EndpointError) -> dict[str, Any] | None:
    """The same call in the dialect that the refusal asks for; None where it asks for no other."""
    text = error.message
    if "stream_options" in text and "stream_options" in sent:
        return {name: value for name, value in sent.items() if name != "stream_options"}
    if "max_completion_tokens" in text and "max_tokens" in sent:
        return _renamed(sent, "max_tokens", "max_completion_tokens")
    if "max_completion_tokens" in text and "max_completion_tokens" in sent:
        return _renamed(sent, "max_completion_tokens", "max_tokens")
    return None


def _renamed(sent: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in sent.items()}


def assemble(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Chunks of a stream to one whole reply. Raises EndpointError for one that is cut short."""
    head: dict[str, Any] = {}
    content, reasoning, refusal = Text(), Text(), Text()
    finish: object = None
    seen = False
    for chunk in chunks:
        head |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)}
        for choice in mappings(chunk.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            seen = True
            delta = mapping(choice.get("delta"))
            content.add(_said(delta.get("content")))
            reasoning.add(_thought(delta))
            refusal.add(delta.get("refusal"))
            finish = choice.get("finish_reason") or finish
    if not seen:
        raise bad_reply("the endpoint's stream held no answer: no choices")
    if finish is None:
        raise cut_short()
    message = {"role": "assistant", "content": str(content), "reasoning_content": str(reasoning)}
    choice = {"index": 0, "message": {**message, "refusal": str(refusal)}, "finish_reason": finish}
    return {**head, "choices": [choice]}


def read(whole: dict[str, Any]) -> Parts:
    """The answer of a whole reply. Raises EndpointError where there is none."""
    if whole.get("error"):
        raise Problem.of_json(None, whole).error()
    choice = next(mappings(whole.get("choices")), None)
    if choice is None:
        raise bad_reply("the endpoint's reply holds no answer: no choices")
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise Problem.of_json(None, choice).error()
    message = mapping(choice.get("message"))
    return Parts(
        text=_said(message.get("content")) or joined([message.get("refusal")]),
        reasoning=_thought(message),
        finish_reason=word(choice.get("finish_reason")),
        usage=_usage(mapping(whole.get("usage"))),
    )


def _said(content: object) -> str:
    """Text of a content: a string, or the text among a list of parts."""
    if isinstance(content, list):
        return joined(part.get("text") for part in mappings(content))
    return joined([content])


def _thought(message: dict[str, Any]) -> str:
    """Reasoning under whichever name it comes first; servers that send two send the same twice."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := message.get(name), str) and text:
            return joined([text])
    parts = [part.get("thinking") for part in mappings(message.get("content"))]
    return joined(_said(part) for part in parts)


def _usage(usage: dict[str, Any]) -> Usage:
    said = mapping(usage.get("completion_tokens_details"))
    asked = mapping(usage.get("prompt_tokens_details"))
    cached = asked.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    return Usage(
        prompt_tokens=count(usage.get("prompt_tokens")),
        completion_tokens=count(usage.get("completion_tokens")),
        reasoning_tokens=count(said.get("reasoning_tokens", usage.get("reasoning_tokens"))),
        cached_tokens=count(cached),
    )
