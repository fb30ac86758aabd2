"""Huge, endless and compressed bodies against a real server: refused, in flat memory."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
URL = "/api/v1/submissions/"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """(port, token, process) of gunicorn with a database of its own."""
    var = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PTXBOARD_VAR": str(var)}
    environment.pop("PTXBOARD_DATABASE_URL", None)
    for command in ("migrate", "sync_catalogue", "demo_user"):
        subprocess.run(
            [sys.executable, "manage.py", command, "-v0"], cwd=ROOT, env=environment, check=True
        )
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "webapp.wsgi", "-b", f"127.0.0.1:{port}"]
    command += ["--worker-class", "gthread", "--threads", "4"]
    with (var / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for(port)
        yield port, (var / "demo_token").read_text().strip(), process
    finally:
        process.terminate()
        process.wait(20)


def wait_for(port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            return send(port, "GET", "/healthz")
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the site did not start")


def send(port, method, path, body=None, headers=None, *, chunked=False):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has answered already
            connection.request(method, path, body, headers or {}, encode_chunked=chunked)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def headers(token, **more):
    return {"Authorization": f"Token {token}", "Content-Type": "application/json", **more}


def peak_bytes(process):
    """The largest memory of the server's processes so far."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    peaks = []
    for pid in children:
        status = Path(f"/proc/{pid}/status").read_text()
        peaks.append(int(status.split("VmHWM:")[1].split()[0]) * 1024)
    return max(peaks)


def blocks(total):
    """A JSON text of `total` bytes, in pieces, so that the test itself stays small too."""
    yield b'{"source": "'
    for _ in range(total // 65536):
        yield b" " * 65536
    yield b'"}'


def endless(seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield b" " * 65536


def test_a_huge_body_is_413_in_flat_memory(site):
    port, token, process = site
    before = peak_bytes(process)
    size = sum(len(block) for block in blocks(300 << 20))
    status, body = send(
        port, "POST", URL, blocks(300 << 20), headers(token, **{"Content-Length": str(size)})
    )
    assert status == 413
    assert body["detail"] == f"the body holds {size} bytes, at most 2097152"
    assert peak_bytes(process) - before < 32 << 20


def test_a_body_without_an_end_is_413_and_others_are_served(site):
    port, token, process = site
    before = peak_bytes(process)
    told = headers(token, **{"Transfer-Encoding": "chunked"})
    status, body = send(port, "POST", URL, endless(20), told, chunked=True)
    assert status == 413
    assert "more than 2097152 bytes" in body["detail"]
    assert send(port, "GET", "/healthz")[0] == 200
    assert peak_bytes(process) - before < 32 << 20


def test_others_are_served_while_a_body_does_not_end(site):
    port, token, _ = site
    head = "".join(f"{name}: {value}\r\n" for name, value in headers(token).items())
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as slow:
        request = f"POST {URL} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}"
        slow.sendall(f"{request}Transfer-Encoding: chunked\r\n\r\n1\r\n ".encode())
        for _ in range(5):
            assert send(port, "GET", "/healthz")[0] == 200


def test_a_short_body_in_chunks_is_read(site):
    port, token, _ = site
    told = headers(token, **{"Transfer-Encoding": "chunked"})
    status, body = send(port, "POST", URL, iter([b'{"problem":', b' "x"}']), told, chunked=True)
    assert status == 400
    assert body["errors"][0]["seen"] == "x"


def test_a_compressed_body_is_never_unpacked(site):
    port, token, _ = site
    told = headers(token, **{"Content-Encoding": "gzip"})
    assert send(port, "POST", URL, b"\x1f\x8b" + b"0" * 300_000, told)[0] == 415


def test_a_source_of_forty_megabytes_is_413(site):
    port, token, _ = site
    body = json.dumps({"problem": "gemm_n256_k256", "source": " " * (40 << 20)}).encode()
    assert send(port, "POST", URL, body, headers(token))[0] == 413
