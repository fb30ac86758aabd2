"""Servers with quirks: http://127.0.0.1:PORT/<quirk>/v1 misbehaves as its name says.

A quirk is a function of the handler; what it needs of the request is in `handler.body`. The plain
answers come from examples/scripted_endpoint.py.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from examples.scripted_endpoint import ScriptedHandler, ScriptedServer

QUIRKS: dict[str, Callable[["QuirkHandler"], None]] = {}


class QuirkHandler(ScriptedHandler):
    server: "QuirkServer"
    body: dict[str, Any]

    def do_POST(self) -> None:  # noqa: N802
        quirk = self.path.split("/")[1]
        if quirk not in QUIRKS:
            super().do_POST()
            return
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.body = json.loads(raw)
        self.server.seen.append((dict(self.headers), self.body))
        QUIRKS[quirk](self)

    def send_raw(self, status: int, data: bytes, **headers: str) -> None:
        """Headers by keyword, underscores for dashes; the length is told unless given."""
        self.send_response(status)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Content-Length": str(len(data))} | names).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def send_text(self, status: int, body: Any, **headers: str) -> None:
        """A JSON body, or HTML where `body` is text."""
        kind = "text/html" if isinstance(body, str) else "application/json"
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_raw(status, data, **{"Content-Type": kind, **headers})

    def open_stream(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def say(self, value: Any) -> None:
        """One event: a text as it is, else JSON."""
        text = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(f"data: {text}\n\n".encode())


class QuirkServer(ScriptedServer):
    """`seen` holds (headers, body) of each request to a quirk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, handler=QuirkHandler)
        self.seen: list[tuple[dict[str, str], dict[str, Any]]] = []

    def at(self, quirk: str) -> str:
        return self.url.replace("/v1", f"/{quirk}/v1")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what many tests are about."""


def quirk(function: Callable[[QuirkHandler], None]) -> Callable[[QuirkHandler], None]:
    QUIRKS[function.__name__] = function
    return function


def chat_reply(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return {"id": "c1", "model": "served", "choices": choices, **more}


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c1", "model": "served", "choices": choices}


def answer(handler: QuirkHandler, text: str = "fine") -> None:
    """A good chat answer, streamed as asked."""
    if not handler.body.get("stream"):
        handler.send_text(200, chat_reply({"role": "assistant", "content": text}))
        return
    handler.open_stream()
    handler.say(chunk({"content": text}))
    handler.say(chunk({}, "stop"))
    handler.say("[DONE]")


def error_body(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}
