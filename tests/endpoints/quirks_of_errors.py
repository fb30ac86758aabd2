"""Errors by status and wording: field case O-35, and what other servers write."""

from collections.abc import Callable
from typing import Any

from tests.endpoints.scripted import QUIRKS, QuirkHandler, error_body

OVERFLOWS = {
    "openai": (
        400,
        error_body(
            "This model's maximum context length is 32768 tokens. However, you requested 41000",
            code="context_length_exceeded",
        ),
    ),
    "vllm": (400, {"object": "error", "message": "maximum context length is 4096", "code": 400}),
    "negative": (400, error_body("max_tokens must be at least 1, got -186.")),
    "negative_new": (400, error_body("max_completion_tokens must be at least 1, got -3")),
    "anthropic": (
        400,
        {"type": "error", "error": {"message": "prompt is too long: 208310 tokens > 200000"}},
    ),
    "anthropic_413": (413, error_body("Request exceeds the maximum context length")),
    "llama_cpp": (400, error_body("the request exceeds the available context size")),
    "llama_cpp_500": (500, error_body("the request exceeds the available context size")),
    "sglang": (
        400,
        error_body("The input (9000 tokens) is longer than the model's context length"),
    ),
    "tgi": (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
    "gemini": (400, [error_body("token count exceeds the maximum number of tokens allowed")]),
}


def _overflow(name: str) -> Callable[[QuirkHandler], None]:
    def send(handler: QuirkHandler) -> None:
        handler.send_text(*OVERFLOWS[name])

    return send


def _status(status: int, body: Any, **headers: str) -> Callable[[QuirkHandler], None]:
    def send(handler: QuirkHandler) -> None:
        handler.send_text(status, body, **headers)

    return send


QUIRKS |= {f"overflow-{name}": _overflow(name) for name in OVERFLOWS}
QUIRKS |= {
    f"status-{status}": _status(status, f"<html><h1>{status}</h1>{'x' * 5000}</html>")
    for status in (400, 401, 402, 403, 404, 408, 409, 422, 500, 501, 502, 503, 504, 529)
}
_LIMITED = error_body("Too many requests")
QUIRKS |= {
    "limited-seconds": _status(429, _LIMITED, Retry_After="7"),
    "limited-past": _status(429, _LIMITED, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "limited-day": _status(429, _LIMITED, Retry_After="86400"),
    "limited-nonsense": _status(429, _LIMITED, Retry_After="soon"),
    "limited-bare": _status(429, _LIMITED),
    "limited-spent": _status(429, error_body("You exceeded it", code="insufficient_quota")),
    "limited-quota-rate": _status(
        429, error_body("You exceeded your current quota"), Retry_After="31"
    ),
    "no-model-400": _status(400, error_body("x/y is not a valid model ID")),
    "no-model-pinned": _status(400, {"detail": "Server is pinned to 'a'; requested 'b'."}),
    "no-key-400": _status(400, error_body("API key not valid. Please pass a valid API key.")),
}
