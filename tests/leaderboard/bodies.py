"""Bodies of submissions for tests, and the one check of an error's shape."""

from typing import Any

HOST_SOURCE = 'extern "C" void run(const void* a, const void* b, void* c, void* s) {}\n'


def host_body(**more: Any) -> dict[str, Any]:
    """A C++ kernel for the small GEMM on `host`."""
    return {
        "problem": "gemm_n256_k256",
        "target": "host",
        "language": "cpp",
        "binding": "c",
        "source": HOST_SOURCE,
        "name": "plain loops",
        **more,
    }


def h200_body(**more: Any) -> dict[str, Any]:
    return {**host_body(target="h200", language="cuda"), **more}


def problem_of(answer: Any, status: int) -> dict[str, Any]:
    """The problem+json of an answer; fails unless it has the shape of every error of the API."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert {"type", "title", "status", "detail", "errors"} <= set(body)
    assert body["status"] == status
    for error in body["errors"]:
        assert error["message"]
        assert "pointer" in error
    return body


def content_of(answer: Any) -> bytes:
    """The bytes of a streamed answer; reading to the end closes its file."""
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content)


def pointers(body: dict[str, Any]) -> list[str]:
    return [error["pointer"] for error in body["errors"]]
