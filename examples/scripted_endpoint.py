"""A model endpoint without a model: answers like OpenAI's or Anthropic's from a folder of files.

    python examples/scripted_endpoint.py FOLDER [--port 8900] [--api chat] [--delay S]

Serves POST /v1/chat/completions, /v1/responses and /v1/messages, streamed or whole, as asked.
An answer is FOLDER/<variant>/<trajectory>/<turn>.md. The first of these that exists is sent:

    <variant>/<trajectory>/<turn>.md   <variant>/<turn>.md   default/<trajectory>/<turn>.md
    default/<turn>.md                  default/last.md

turn        how many answers the conversation holds already: 0 for the first call
variant     from the label; else what follows '@' in the model's name; else from a line
            "Variant: <slug>" in the prompt; else "default"
trajectory  from the label; else the parameter `seed`; else 0
label       `<run>/<variant>/<trajectory>` in `user` or `metadata.user_id`, with a fourth part
            `/<turn>` where the conversation does not show it; a run sends labels with the
            parameter `send_labels`

Beside an answer may lie <turn>.reasoning.md (sent as thinking) and <turn>.error.json, an error to
send before it, `times` times to each trajectory: {"status": 429, "message": "busy",
"retry_after": "1", "times": 2}.
"""

import argparse
import contextlib
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

APIS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
PIECE_CHARS = 400
SLUG = re.compile(r"[A-Za-z0-9_.-]+")
VARIANT_LINE = re.compile(r"^\W*variant\W+([A-Za-z0-9_.-]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a request's body says about which answer is due."""

    api: str
    model: str
    variant: str
    trajectory: str
    turn: int
    stream: bool
    prompt_chars: int

    @property
    def names(self) -> list[str]:
        """Paths to try, without their ending, the best first."""
        turn = str(self.turn)
        return [
            f"{self.variant}/{self.trajectory}/{turn}",
            f"{self.variant}/{turn}",
            f"default/{self.trajectory}/{turn}",
            f"default/{turn}",
            "default/last",
        ]


@dataclass(frozen=True)
class Answer:
    text: str
    reasoning: str = ""


@dataclass(frozen=True)
class Refusal:
    """An error to send: scripted, or because no answer is there."""

    status: int
    message: str
    retry_after: str | None = None


@dataclass
class Script:
    """The folder of answers; counts how often each trajectory got each scripted error."""

    folder: Path
    _sent: Counter[tuple[Path, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, asked: Asked) -> Answer | Refusal:
        for name in asked.names:
            path = self.folder / f"{name}.md"
            if refusal := self._error(path.with_suffix(".error.json"), asked):
                return refusal
            if path.is_file():
                thinking = path.with_suffix(".reasoning.md")
                reasoning = thinking.read_text() if thinking.is_file() else ""
                return Answer(path.read_text(), reasoning)
        tried = ", ".join(f"{name}.md" for name in asked.names)
        return Refusal(400, f"no scripted answer; looked for {tried}")

    def _error(self, path: Path, asked: Asked) -> Refusal | None:
        if not path.is_file():
            return None
        script = json.loads(path.read_text())
        key = (path, asked.variant, asked.trajectory)
        with self._lock:
            self._sent[key] += 1
            if self._sent[key] > script.get("times", 1):
                return None
        message = script.get("message", "scripted error")
        return Refusal(script["status"], message, script.get("retry_after"))


def read_request(api: str, body: dict[str, Any]) -> Asked:
    """Which answer is due. Shapes: the three APIs' own; unknown fields do not matter."""
    turns = body.get("input" if api == "responses" else "messages") or []
    turns = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
    before = "\n".join(_text(body.get(name)) for name in ("instructions", "system"))
    prompt = before + "\n" + "\n".join(_text(turn.get("content")) for turn in turns)
    label = body.get("user") or (body.get("metadata") or {}).get("user_id") or ""
    parts = [*label.split("/"), "", "", "", ""][:4]
    line = VARIANT_LINE.search(prompt)
    suffix = body.get("model", "").partition("@")[2]
    variant = parts[1] or suffix or (line.group(1) if line else "default")
    answered = sum(turn.get("role") == "assistant" for turn in turns)
    return Asked(
        api=api,
        model=body.get("model", ""),
        variant=_slug(variant),
        trajectory=_slug(parts[2] or str(body.get("seed") or 0)),
        turn=int(parts[3]) if parts[3].isdecimal() else answered,
        stream=bool(body.get("stream")),
        prompt_chars=len(prompt),
    )


def _text(content: Any) -> str:
    """A message's text: a string, or a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def _slug(text: str) -> str:
    """A name that cannot leave the folder."""
    return text if SLUG.fullmatch(text) and text.strip(".") else "default"


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def named_event(kind: str, **more: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"


class Chat:
    """Shapes of /chat/completions."""

    @staticmethod
    def usage(asked: Asked, answer: Answer) -> dict[str, Any]:
        prompt, thought = 1 + asked.prompt_chars // 4, len(answer.reasoning) // 4
        said = 1 + len(answer.text) // 4 + thought
        return {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
            "completion_tokens_details": {"reasoning_tokens": thought},
            "prompt_tokens_details": {"cached_tokens": 0},
        }

    @classmethod
    def whole(cls, asked: Asked, answer: Answer) -> dict[str, Any]:
        message = {"role": "assistant", "content": answer.text}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        head = {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = cls.usage(asked, answer)
        return {**head, "model": asked.model, "choices": choices, "usage": usage}

    @classmethod
    def events(cls, asked: Asked, answer: Answer) -> Iterator[str]:
        deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in pieces(answer.reasoning)]
        deltas += [{"content": piece} for piece in pieces(answer.text)]
        for delta in deltas:
            yield cls._event(asked, [{"index": 0, "delta": delta, "finish_reason": None}])
        yield cls._event(asked, [{"index": 0, "delta": {}, "finish_reason": "stop"}])
        yield cls._event(asked, [], usage=cls.usage(asked, answer))
        yield "data: [DONE]\n\n"

    @staticmethod
    def _event(asked: Asked, choices: list[dict[str, Any]], **more: Any) -> str:
        head = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0}
        chunk = {**head, "model": asked.model, "choices": choices, **more}
        return f"data: {json.dumps(chunk)}\n\n"


class Responses:
    """Shapes of /responses."""

    @staticmethod
    def whole(asked: Asked, answer: Answer) -> dict[str, Any]:
        usage = Chat.usage(asked, answer)
        output: list[dict[str, Any]] = []
        if answer.reasoning:
            summary = [{"type": "summary_text", "text": answer.reasoning}]
            output.append({"id": "rs_scripted", "type": "reasoning", "summary": summary})
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        said = {"id": "msg_scripted", "type": "message", "role": "assistant", "content": content}
        output.append({**said, "status": "completed"})
        head = {"id": "resp_scripted", "object": "response", "created_at": 0}
        return {
            **head,
            "status": "completed",
            "model": asked.model,
            "output": output,
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "output_tokens": usage["completion_tokens"],
                "total_tokens": usage["total_tokens"],
                "output_tokens_details": usage["completion_tokens_details"],
                "input_tokens_details": usage["prompt_tokens_details"],
            },
        }

    @classmethod
    def events(cls, asked: Asked, answer: Answer) -> Iterator[str]:
        whole = cls.whole(asked, answer)
        yield named_event("response.created", response={**whole, "status": "in_progress"})
        where = {"item_id": "msg_scripted", "output_index": 0, "content_index": 0}
        for piece in pieces(answer.text):
            yield named_event("response.output_text.delta", **where, delta=piece)
        yield named_event("response.completed", response=whole)


class Messages:
    """Shapes of /messages."""

    @staticmethod
    def whole(asked: Asked, answer: Answer) -> dict[str, Any]:
        usage = Chat.usage(asked, answer)
        content = [{"type": "text", "text": answer.text}]
        if answer.reasoning:
            thinking = {"type": "thinking", "thinking": answer.reasoning, "signature": "scripted"}
            content.insert(0, thinking)
        head = {"id": "msg_scripted", "type": "message", "role": "assistant"}
        return {
            **head,
            "model": asked.model,
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "output_tokens": usage["completion_tokens"],
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0,
            },
        }

    @classmethod
    def events(cls, asked: Asked, answer: Answer) -> Iterator[str]:
        whole = cls.whole(asked, answer)
        start = {**whole, "content": [], "stop_reason": None}
        yield named_event("message_start", message=start)
        for index, block in enumerate(whole["content"]):
            yield from cls._block(index, block)
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        usage = {"output_tokens": whole["usage"]["output_tokens"]}
        yield named_event("message_delta", delta=delta, usage=usage)
        yield named_event("message_stop")

    @classmethod
    def _block(cls, index: int, block: dict[str, Any]) -> Iterator[str]:
        field_name = block["type"]  # "text" or "thinking": block, delta and field share the word
        empty = {**block, field_name: ""}
        yield named_event("content_block_start", index=index, content_block=empty)
        for piece in pieces(block[field_name]):
            delta = {"type": f"{field_name}_delta", field_name: piece}
            yield named_event("content_block_delta", index=index, delta=delta)
        yield named_event("content_block_stop", index=index)


SHAPES: dict[str, Any] = {"chat": Chat, "responses": Responses, "messages": Messages}


class ScriptedHandler(BaseHTTPRequestHandler):
    """One request; `server` is a ScriptedServer."""

    protocol_version = "HTTP/1.1"
    server: "ScriptedServer"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        api = next((name for name, end in APIS.items() if self.path.endswith(end)), None)
        if api is None or self.server.api not in (None, api):
            self.send_error_json(Refusal(404, f"there is no {self.path}"))
            return
        try:
            asked = read_request(api, json.loads(raw))
        except (ValueError, AttributeError, TypeError) as error:
            self.send_error_json(Refusal(400, f"cannot read the request: {error}"))
            return
        time.sleep(self.server.delay_seconds)
        reply = self.server.script.reply(asked)
        self.log_message("%s %s", asked.names[0], type(reply).__name__.lower())
        if isinstance(reply, Refusal):
            self.send_error_json(reply)
        elif asked.stream:
            self.send_events(SHAPES[api].events(asked, reply))
        else:
            self.send_json(200, SHAPES[api].whole(asked, reply))

    def send_error_json(self, refusal: Refusal) -> None:
        headers = {"Retry-After": refusal.retry_after} if refusal.retry_after else {}
        kind = "rate_limit_error" if refusal.status == 429 else "scripted_error"
        body = {"type": "error", "error": {"type": kind, "message": refusal.message}}
        self.send_json(refusal.status, body, headers)

    def send_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_events(self, events: Iterator[str]) -> None:
        """Server-sent events, one chunk each; the stream ends with the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # a caller that has gone
            for event in events:
                self.wfile.write(event.encode())

    def log_message(self, format: str, *args: Any) -> None:
        if self.server.verbose:
            super().log_message(format, *args)


class ScriptedServer(ThreadingHTTPServer):
    """`with ScriptedServer(folder) as server:` then `server.start()`; `server.url` ends in /v1."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        api: str | None = None,
        delay_seconds: float = 0.0,
        verbose: bool = False,
        handler: type[ScriptedHandler] = ScriptedHandler,
    ) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.script = Script(folder)
        self.api, self.delay_seconds, self.verbose = api, delay_seconds, verbose

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *exc: object) -> None:
        self.shutdown()
        super().__exit__(*exc)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8900)
    parser.add_argument("--api", choices=sorted(APIS), help="serve this API only")
    parser.add_argument("--delay", type=float, default=0.0, metavar="S", help="seconds per answer")
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"{options.folder} is not a folder", file=sys.stderr)
        return 2
    more = {"port": options.port, "api": options.api, "delay_seconds": options.delay}
    server = ScriptedServer(options.folder, verbose=True, **more)
    print(f"answers from {options.folder} at {server.url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
