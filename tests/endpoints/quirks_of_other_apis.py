"""The responses and the messages API, and what goes wrong in their streams."""

import json
from typing import Any

from tests.endpoints.scripted import QuirkHandler, quirk


def named(handler: QuirkHandler, kind: str, **more: Any) -> None:
    data = json.dumps({"type": kind, **more})
    handler.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())


@quirk
def messages_overloaded(handler: QuirkHandler) -> None:
    handler.open_stream()
    named(handler, "message_start", message={"id": "m", "content": [], "usage": {}})
    named(handler, "error", error={"type": "overloaded_error", "message": "Overloaded"})


@quirk
def messages_cut(handler: QuirkHandler) -> None:
    handler.open_stream()
    named(handler, "message_start", message={"id": "m", "content": [], "stop_reason": None})
    named(handler, "content_block_delta", index=0, delta={"type": "text_delta", "text": "half"})


@quirk
def messages_thinking(handler: QuirkHandler) -> None:
    """Thinking, a redacted block, text in two blocks, the cache, and the context's end."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5}
    handler.open_stream()
    start = {"id": "m", "model": "served", "content": [], "stop_reason": None, "usage": usage}
    named(handler, "message_start", message=start)
    named(handler, "ping")
    block = {"type": "thinking", "thinking": "", "signature": ""}
    named(handler, "content_block_start", index=0, content_block=block)
    for piece in ("I ", "think"):
        delta = {"type": "thinking_delta", "thinking": piece}
        named(handler, "content_block_delta", index=0, delta=delta)
    delta = {"type": "signature_delta", "signature": "xyz"}
    named(handler, "content_block_delta", index=0, delta=delta)
    named(handler, "content_block_stop", index=0)
    block = {"type": "redacted_thinking", "data": "xyz"}
    named(handler, "content_block_start", index=1, content_block=block)
    for index, text in ((2, "one"), (3, " two")):
        named(handler, "content_block_start", index=index, content_block={"type": "text"})
        delta = {"type": "text_delta", "text": text}
        named(handler, "content_block_delta", index=index, delta=delta)
    delta = {"stop_reason": "model_context_window_exceeded"}
    usage = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}
    named(handler, "message_delta", delta=delta, usage=usage)
    named(handler, "message_stop")


@quirk
def messages_without_content(handler: QuirkHandler) -> None:
    handler.send_text(200, {"id": "m", "type": "message", "content": None})


@quirk
def responses_failed(handler: QuirkHandler) -> None:
    handler.open_stream()
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    response = {"id": "r", "status": "failed", "error": error, "output": []}
    named(handler, "response.failed", response=response)


@quirk
def responses_error(handler: QuirkHandler) -> None:
    handler.open_stream()
    named(handler, "error", code="server_error", message="it broke")


@quirk
def responses_cut(handler: QuirkHandler) -> None:
    handler.open_stream()
    named(handler, "response.output_text.delta", delta="half")


@quirk
def responses_incomplete(handler: QuirkHandler) -> None:
    handler.open_stream()
    summary = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    response = {
        "id": "r",
        "model": "served",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "reasoning", "summary": summary}],
        "usage": {"input_tokens": 3, "output_tokens": 16, "output_tokens_details": None},
    }
    named(handler, "response.incomplete", response=response)


@quirk
def responses_queued(handler: QuirkHandler) -> None:
    handler.send_text(200, {"id": "r", "status": "queued", "output": []})


@quirk
def responses_without_summaries(handler: QuirkHandler) -> None:
    if "summary" in handler.body.get("reasoning", {}):
        text = "Your organization must be verified to generate reasoning summaries."
        handler.send_text(400, {"error": {"message": text}})
    else:
        content = [{"type": "output_text", "text": "fine"}]
        output = [{"type": "message", "content": content}]
        handler.send_text(200, {"id": "r", "status": "completed", "output": output})
