"""Whole replies, and what is wrong with them."""

import gzip

from tests.endpoints.scripted import QuirkHandler, answer, chat_reply, chunk, error_body, quirk


@quirk
def plain(handler: QuirkHandler) -> None:
    answer(handler)


@quirk
def echoes_key(handler: QuirkHandler) -> None:
    """A lying server: the key in every field, in pieces of a stream as well."""
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    handler.open_stream()
    for piece in (key[:7], key[7:], f" {key}\0\ud800"):
        handler.say({**chunk({"content": piece, "reasoning_content": piece}), "model": key})
    handler.say({**chunk({}, key), "model": key})


@quirk
def echoes_key_in_error(handler: QuirkHandler) -> None:
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    handler.send_text(401, error_body(f"Incorrect API key provided: {key}", code=key))


@quirk
def echoes_path(handler: QuirkHandler) -> None:
    handler.send_text(404, error_body(f"there is no {handler.path}"))


@quirk
def ignores_stream(handler: QuirkHandler) -> None:
    handler.send_text(200, chat_reply({"role": "assistant", "content": "whole"}))


@quirk
def refuses_stream(handler: QuirkHandler) -> None:
    if handler.body.get("stream"):
        handler.send_text(400, error_body("stream is not supported by this model"))
    else:
        answer(handler, "whole")


@quirk
def refuses_stream_options(handler: QuirkHandler) -> None:
    if "stream_options" in handler.body:
        handler.send_text(422, {"detail": "extra field: stream_options"})
    else:
        answer(handler)


@quirk
def newer_limit_name(handler: QuirkHandler) -> None:
    if "max_tokens" in handler.body:
        text = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        handler.send_text(400, error_body(text, code="unsupported_parameter"))
    else:
        answer(handler)


@quirk
def never_content(handler: QuirkHandler) -> None:
    refusal = "stream is not supported; stream_options is not; use max_completion_tokens"
    handler.send_text(400, error_body(refusal))


@quirk
def reasoning_only(handler: QuirkHandler) -> None:
    """Field case O-33."""
    message = {"role": "assistant", "content": None, "reasoning_content": "First I tile K by 64"}
    usage = {
        "prompt_tokens": 9100,
        "completion_tokens": 4096,
        "completion_tokens_details": {"reasoning_tokens": 4096},
    }
    handler.send_text(200, chat_reply(message, "length", usage=usage))


@quirk
def parts(handler: QuirkHandler) -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "one"},
        {"type": "text", "text": " two"},
    ]
    handler.send_text(200, chat_reply({"content": content}, "stop"), **{"x-request-id": "req-7"})


@quirk
def no_choices(handler: QuirkHandler) -> None:
    handler.send_text(200, {"id": "c1", "model": "served", "choices": []})


@quirk
def null_everywhere(handler: QuirkHandler) -> None:
    handler.send_text(200, {"choices": [{"message": None, "finish_reason": None}], "usage": None})


@quirk
def filtered(handler: QuirkHandler) -> None:
    handler.send_text(200, chat_reply({"content": "", "refusal": "I cannot"}, "content_filter"))


@quirk
def huge_counts(handler: QuirkHandler) -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": -1, "reasoning_tokens": True}
    handler.send_text(200, chat_reply({"content": "x"}, usage=usage))


@quirk
def error_with_200(handler: QuirkHandler) -> None:
    handler.send_text(200, error_body("upstream is overloaded", code=503))


@quirk
def list_reply(handler: QuirkHandler) -> None:
    handler.send_text(200, [1, 2])


@quirk
def not_json(handler: QuirkHandler) -> None:
    handler.send_raw(200, b"{'single': quotes}", Content_Type="application/json")


@quirk
def not_utf8(handler: QuirkHandler) -> None:
    handler.send_raw(200, b'{"choices": "\xff\xfe"}', Content_Type="application/json")


@quirk
def deep_json(handler: QuirkHandler) -> None:
    handler.send_raw(200, b"[" * 200_000, Content_Type="application/json")


@quirk
def web_page(handler: QuirkHandler) -> None:
    handler.send_text(200, "<html><h1>Welcome</h1></html>")


@quirk
def a_megabyte(handler: QuirkHandler) -> None:
    handler.send_text(200, chat_reply({"content": "x" * 1_000_000}))


@quirk
def ten_megabytes(handler: QuirkHandler) -> None:
    handler.send_text(200, chat_reply({"content": "x" * 10_000_000}))


@quirk
def ten_megabyte_stream(handler: QuirkHandler) -> None:
    handler.open_stream()
    for _ in range(100):
        handler.say(chunk({"content": "x" * 100_000}))
    handler.say(chunk({}, "stop"))


@quirk
def endless(handler: QuirkHandler) -> None:
    handler.open_stream()
    while True:
        handler.wfile.write(b": nothing\n\n" * 1000)


@quirk
def endless_headers(handler: QuirkHandler) -> None:
    handler.send_response(200)
    while True:
        handler.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")


@quirk
def endless_error(handler: QuirkHandler) -> None:
    handler.close_connection = True
    handler.send_response(500)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x" * 65_536)


@quirk
def compressed(handler: QuirkHandler) -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    handler.send_raw(200, bomb, Content_Type="application/json", Content_Encoding="gzip")


@quirk
def redirects(handler: QuirkHandler) -> None:
    handler.send_raw(307, b"", Location=handler.server.at("plain") + "/chat/completions")
