"""The whole product as separate processes: site, broker, workers; on both kinds of storage."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START_SECONDS = 120


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(condition, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.1)


@dataclass(frozen=True, kw_only=True)
class Product:
    """A running demo: its address, its folder and its output."""

    url: str
    var: Path
    process: "subprocess.Popen[str]"
    output: Path

    @property
    def token(self) -> str:
        return (self.var / "demo_token").read_text().strip()

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def submit(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """examples/submit.py, as the README shows it."""
        site = ("--site", self.url, "--token-file", str(self.var / "demo_token"))
        command = [sys.executable, "examples/submit.py", *arguments, *site]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)


@contextmanager
def running(var: Path, environment: dict[str, str] | None = None) -> Iterator[Product]:
    """`manage.py demo --empty` until the test ends, then Ctrl-C; it must stop by itself."""
    port, output = free_port(), var / "demo.out"
    var.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "manage.py", "demo", "--port", str(port), "--empty"]
    with output.open("w") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PTXBOARD_VAR": str(var), **(environment or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        wait_for(
            lambda: "PTXBoard is at" in output.read_text() or process.poll() is not None,
            START_SECONDS,
            "the demo's welcome",
        )
        assert process.poll() is None, output.read_text()
        yield Product(url=f"http://127.0.0.1:{port}", var=var, process=process, output=output)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The embedded default: SQLite and a broker without a server."""
    with running(tmp_path_factory.mktemp("embedded") / "var") as product:
        yield product


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = ["redis-server", "--port", str(port), "--dir", str(folder), "--appendonly", "yes"]
    command += ["--maxmemory-policy", "noeviction", "--bind", "127.0.0.1"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: _listens(port), 20, "redis-server")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A cluster of its own; as root it is run by the user `postgres`, as the server insists.

    Not below pytest's folders: each run of pytest closes those to other users, this one's too.
    """
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="ptxboard-postgresql-"))
    binaries, data = _postgresql_binaries(), folder / "data"
    as_user = _as_postgres(folder)
    init = [binaries / "initdb", "-D", data, "-A", "trust", "-U", "ptxboard", "-N"]
    subprocess.run([*as_user, *map(str, init)], check=True, capture_output=True)
    serve = [binaries / "postgres", "-D", data, "-p", str(port), "-k", folder]
    serve += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*as_user, *map(str, serve)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for(lambda: _listens(port), 30, "postgres")
        yield f"postgresql://ptxboard@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _postgresql_binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    here = shutil.which("initdb")
    assert here, "initdb is missing: run make test, or install the package postgresql"
    return Path(here).resolve().parent


def _version(initdb: Path) -> int:
    return int(re.findall(r"\d+", str(initdb))[0])


def _as_postgres(folder: Path) -> list[str]:
    if os.getuid() != 0:
        return []
    shutil.chown(folder, "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0
