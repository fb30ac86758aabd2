"""Streams of chat completions, and what goes wrong in them."""

import time

from tests.endpoints.scripted import QuirkHandler, chunk, error_body, quirk


@quirk
def names_reasoning(handler: QuirkHandler) -> None:
    """Comments, pings, an empty delta, another choice, reasoning by its other name, late usage."""
    handler.open_stream()
    handler.wfile.write(b": ping\n\n")
    handler.say({"choices": None})
    handler.say(chunk({"role": "assistant", "content": None, "reasoning": "I "}))
    handler.say({"choices": [{"index": 1, "delta": {"content": "the other"}}]})
    handler.say(chunk({"reasoning": "think"}))
    handler.say(chunk({"content": "done"}, "length"))
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "prompt_cache_hit_tokens": 4}
    handler.say({"choices": [], "usage": usage})
    handler.say("[DONE]")


@quirk
def error_in_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.say(chunk({"content": "half"}))
    handler.say(error_body("Rate limit reached", type="rate_limit_error"))


@quirk
def overflow_in_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.say(error_body("too long", code="context_length_exceeded"))


@quirk
def cut_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.say(chunk({"content": "half"}))


@quirk
def broken_chunk(handler: QuirkHandler) -> None:
    """A chunked body that breaks off inside a chunk."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"fff\r\ndata: {")


@quirk
def empty_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.say("[DONE]")


@quirk
def not_json_in_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.say("{nonsense")


@quirk
def not_utf8_in_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.wfile.write(b"data: \xff\xfe\n\n")


@quirk
def stalls(handler: QuirkHandler) -> None:
    handler.open_stream()
    handler.say(chunk({"content": "half"}))
    time.sleep(30)


@quirk
def drips(handler: QuirkHandler) -> None:
    """Never stalls, never ends."""
    handler.open_stream()
    for _ in range(600):
        handler.wfile.write(b": ping\n\n")
        time.sleep(0.05)


@quirk
def silent(handler: QuirkHandler) -> None:
    time.sleep(30)
