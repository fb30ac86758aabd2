"""Everything on one machine: database, recorded evaluations, site, and workers, until Ctrl-C."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evaluator.targets import TARGETS
from leaderboard.models import Worker
from leaderboard.services.tokens import token_create

RECORDED = settings.BASE_DIR / "examples" / "recorded"
START_SECONDS = 120
STOP_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of the demo; its output goes to `log`."""

    name: str
    popen: "subprocess.Popen[bytes]"
    log: Path

    def stop(self, number: int) -> None:
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            return


class Command(BaseCommand):
    help = "Set up and run the site with a build worker and workers for the named targets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--target", action="append", choices=list(TARGETS), help="default: host; may repeat"
        )
        parser.add_argument("--empty", action="store_true", help="load no recorded evaluations")

    def handle(
        self, *, port: int, target: list[str] | None, empty: bool, **options: object
    ) -> None:
        os.environ["PTXBOARD_SITE_URL"] = f"http://127.0.0.1:{port}"
        _refuse_a_taken_port(port)
        token_file = self.prepare(empty=empty)
        with _processes(self.commands(port, target or ["host"])) as processes:
            self.wait_until_ready(port, processes, expected=1 + len(target or ["host"]))
            self.stdout.write(_welcome(port, token_file))
            _watch(processes)
        self.stdout.write("Stopped.")

    def prepare(self, *, empty: bool) -> Path:
        self.say("Database")
        call_command("migrate", verbosity=0, interactive=False)
        call_command("sync_catalogue", verbosity=0)
        if not settings.PTXBOARD_EMBEDDED:
            call_command("collectstatic", verbosity=0, interactive=False)
        if not empty and RECORDED.is_dir():
            self.say("Recorded evaluations")
            for bundle in sorted(RECORDED.glob("*.zip")):
                call_command("load_evaluations", str(bundle), verbosity=0)
            for bundle in sorted((RECORDED / "runs").glob("*.zip")):
                call_command("load_model_run", str(bundle), verbosity=0)
        token_file = settings.PTXBOARD_VAR / "demo_token"
        call_command("demo_user", token_file=str(token_file), verbosity=0)
        return token_file

    def commands(self, port: int, targets: list[str]) -> dict[str, list[str]]:
        python = sys.executable
        worker = [python, "-m", "evaluator", "worker"]
        celery = [python, "-m", "celery", "-A", "webapp", "worker"]
        quiet = ["--without-gossip", "--without-mingle"]
        return {
            "site": [
                *(python, "-m", "gunicorn", "webapp.wsgi", "--bind", f"127.0.0.1:{port}"),
                *("--workers", "2", "--threads", "4", "--worker-class", "gthread"),
            ],
            "io": [*celery, "-B", "-Q", "io", "--pool", "solo", *quiet],
            "models": [*celery, "-Q", "models", "--pool", "threads", "-c", "32", *quiet],
            "build": [
                *(*worker, "--lane", "build", "--name", "demo-build"),
                *("--concurrency", str(max(1, (os.cpu_count() or 2) // 2))),
            ],
            **{slug: [*worker, "--target", slug, "--name", f"demo-{slug}"] for slug in targets},
        }

    def wait_until_ready(self, port: int, processes: list[Process], *, expected: int) -> None:
        self.say("Site and workers")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            _complain_about_the_dead(processes)
            if _answers(port) and _workers_seen() >= expected:
                return
            time.sleep(0.3)
        raise CommandError(f"not ready after {START_SECONDS} s; logs are in {_log_folder()}")

    def say(self, step: str) -> None:
        self.stdout.write(f"==> {step}")


@contextmanager
def _processes(commands: dict[str, list[str]]) -> Iterator[list[Process]]:
    started: list[Process] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        for name, command in commands.items():
            started.append(_start(name, command))
        yield started
    except KeyboardInterrupt:
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        _stop(started)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _start(name: str, command: list[str]) -> Process:
    log = _log_folder() / f"{name}.log"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if "worker" in command and "evaluator" in command:
        _, secret = token_create(worker_name=f"demo-{name}", label="demo", **_duties(name))
        environment["PTXBOARD_WORKER_TOKEN"] = secret
        environment["PTXBOARD_BROKER_URL"] = settings.PTXBOARD_BROKER_URL
        environment["PTXBOARD_VAR"] = str(settings.PTXBOARD_VAR)
    with log.open("wb") as output:
        popen = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Process(name=name, popen=popen, log=log)


def _duties(name: str) -> dict[str, list[str]]:
    """What the worker of this name may claim: its token serves nothing else."""
    return {"lanes": ["build"]} if name == "build" else {"targets": [name]}


def _stop(processes: list[Process]) -> None:
    for process in reversed(processes):
        process.stop(signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.popen.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.stop(signal.SIGKILL)
            process.popen.wait()


def _watch(processes: list[Process]) -> None:
    while True:
        _complain_about_the_dead(processes)
        time.sleep(1)


def _complain_about_the_dead(processes: list[Process]) -> None:
    for process in processes:
        if process.popen.poll() is not None:
            tail = process.log.read_text(errors="replace")[-3000:]
            raise CommandError(
                f"{process.name} ended with code {process.popen.returncode}; "
                f"its log {process.log} ends with:\n{tail}"
            )


def _log_folder() -> Path:
    folder = settings.PTXBOARD_VAR / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _refuse_a_taken_port(port: int) -> None:
    try:
        _fetch(port, "/healthz")
    except urllib.error.HTTPError:
        pass
    except OSError:
        return
    raise CommandError(f"port {port} is taken; stop what listens there or choose PORT=...")


def _answers(port: int) -> bool:
    try:
        _fetch(port, "/readyz")
    except OSError:
        return False
    return True


def _fetch(port: int, path: str) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        answer.read()


def _workers_seen() -> int:
    return Worker.objects.online(timezone.now()).filter(name__startswith="demo-").count()


def _welcome(port: int, token_file: Path) -> str:
    width = min(shutil.get_terminal_size().columns, 88)
    site = f"http://127.0.0.1:{port}"
    lines = (
        "=" * width,
        f"PTXBoard is at {site}  (Ctrl-C stops it; logs in {_log_folder()})",
        "",
        "Look     " + f"{site}/boards/h200/gemm_n7168_k5120/",
        "         " + f"{site}/model-runs/",
        "Submit   " + f"{site}/submit/",
        "         " + f"sign in as demo; the password is in {token_file.parent}/demo_password",
        "By REST  " + "python examples/submit.py examples/kernels/gemm_host.cpp \\",
        "         " + f"  --problem gemm_n256_k256 --target host --site {site} \\",
        "         " + f"  --token-file {token_file}",
        "A model  " + f"{site}/model-runs/submit/ (README.md, Give it a model)",
        "Shell    " + ".venv/bin/ptxboard evaluate examples/kernels/gemm_host.cpp \\",
        "         " + "  --problem gemm_n256_k256 --target host",
        "=" * width,
    )
    return "\n".join(lines)
