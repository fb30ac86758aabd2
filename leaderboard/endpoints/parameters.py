"""How a model is asked: the parameters that all of a run's calls share, checked for their API."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from evaluator.records.base import Record, canonical_json


class Api(StrEnum):
    CHAT = "openai-chat"
    RESPONSES = "openai-responses"
    MESSAGES = "anthropic-messages"


MAX_EXTRA_BYTES = 16 << 10
MAX_HEADER_CHARS = 1024
# Everything else is refused: Authorization, Host, cookies, forwarding and framing headers among it.
EXTRA_HEADERS = frozenset(
    {
        "anthropic-beta",
        "anthropic-version",
        "http-referer",
        "openai-beta",
        "openai-organization",
        "openai-project",
        "x-title",
    }
)
# Fields that are ours to write; `extra_body` may set every other.
OWN_FIELDS = frozenset({"input", "instructions", "messages", "model", "stream", "system"})
_LACKING: dict[Api, frozenset[str]] = {
    Api.CHAT: frozenset({"thinking"}),
    Api.RESPONSES: frozenset(
        {
            "frequency_penalty",
            "min_p",
            "presence_penalty",
            "repetition_penalty",
            "seed",
            "stop",
            "thinking",
            "top_k",
        }
    ),
    Api.MESSAGES: frozenset(
        {"frequency_penalty", "min_p", "presence_penalty", "repetition_penalty", "seed"}
    ),
}

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Share = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]


class Thinking(Record):
    """Thinking of the messages API: `adaptive`, or `enabled` with a budget, or `disabled`."""

    type: Literal["adaptive", "enabled", "disabled"]
    budget_tokens: Annotated[int, Field(ge=1024, le=1_000_000)] | None = None


class Parameters(Record):
    """None leaves a parameter to the endpoint. Shown on the run's pages, so nothing here is secret.

    stream          False for an endpoint that cannot stream; streaming is dropped by itself where
                    the endpoint refuses it
    send_labels     send the call's label (`<run>/<variant>/<trajectory>`) as `user` or
                    `metadata.user_id`, by which a scripted or logging endpoint tells calls apart
    extra_body      more fields of the request's body, for what only this endpoint knows
    extra_headers   more headers, of EXTRA_HEADERS only
    """

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Field(ge=-1, le=1_000_000)] | None = None
    min_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    reasoning_effort: Effort | None = None
    thinking: Thinking | None = None
    stop: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stream: bool = True
    send_labels: bool = False
    extra_body: dict[str, JsonValue] = {}
    extra_headers: dict[str, str] = {}

    @field_validator("stop")
    @classmethod
    def _few_stops(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > 16:
            raise ValueError(f"{len(value)} stop sequences; at most 16")
        return value

    @field_validator("extra_body")
    @classmethod
    def _body_is_not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(OWN_FIELDS & set(value)):
            raise ValueError(f"extra_body sets {', '.join(taken)}, which the run itself sets")
        size_bytes = len(canonical_json(value).encode())
        if size_bytes > MAX_EXTRA_BYTES:
            raise ValueError(f"extra_body has {size_bytes} bytes; at most {MAX_EXTRA_BYTES}")
        return value

    @field_validator("extra_headers")
    @classmethod
    def _known_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if name.lower() not in EXTRA_HEADERS:
                known = ", ".join(sorted(EXTRA_HEADERS))
                raise ValueError(f"header {name[:60]!r} may not be set; these may: {known}")
            if not (text.isascii() and text.isprintable() and len(text) <= MAX_HEADER_CHARS):
                raise ValueError(
                    f"header {name} needs printable ASCII of at most {MAX_HEADER_CHARS} characters"
                )
        return {name.lower(): text for name, text in value.items()}

    def misfits(self, api: Api) -> tuple[str, ...]:
        """What cannot be sent to `api`, in words; empty where all fits."""
        found = [
            f"the API {api} has no parameter {name}; leave it out, or put what this endpoint "
            "knows in its place into extra_body"
            for name in sorted(_LACKING[api])
            if getattr(self, name) not in (None, ())
        ]
        return (*found, *self._thinking_misfits())

    def _thinking_misfits(self) -> tuple[str, ...]:
        if self.thinking is None:
            return ()
        budget = self.thinking.budget_tokens
        if (self.thinking.type == "enabled") != (budget is not None):
            return ("thinking needs budget_tokens with type 'enabled', and only there",)
        if budget is not None and self.max_tokens is not None and budget >= self.max_tokens:
            seen = f"thinking.budget_tokens is {budget}, max_tokens {self.max_tokens}"
            return (f"{seen}; the budget must be less",)
        return ()
