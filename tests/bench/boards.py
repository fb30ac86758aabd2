"""What boards and turn pages cost on a site with many turns; prints a table for docs/benchmarks.md.

    tests/bench/boards.py --turns 100000
    PTXBOARD_DATABASE_URL=postgresql://user@host/empty tests/bench/boards.py --turns 1000000

100 entrants x 5 problems x 3 targets, each cell with runs of 3 prompt variants, 8 turns a
trajectory. The turns are made up and small (no prompts, no kernels), except for one run with whole
evidence, whose turn pages are measured. Nothing of it is kept.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRANTS, TARGETS, TURNS, VARIANTS = 100, ("h200", "h100", "b200"), 8, 3
PROBLEMS = (
    "gemm_n7168_k5120",
    "mha_with_lse_d128",
    "mha_with_lse_d128_causal",
    "mha_bwd_d128",
    "mha_bwd_d128_causal",
)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
SHA = "0" * 64
BLOB = zlib.compress(b"{}")
FAILURES = ("COMPILE_ERROR", "RUNTIME_ERROR", "INCORRECT_NUMERICAL", "TIMEOUT", "")
REQUESTS, SECONDS, CONNECTIONS = 200, 8.0, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--no-server", action="store_true", help="leave gunicorn out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ptxboard-bench-") as folder:
        _set_up(Path(folder))
        turns = _fill(options.turns)
        _report(turns)
        if not options.no_server:
            _serve()


def _set_up(folder: Path) -> None:
    sys.path.insert(0, str(ROOT))
    os.environ.update(
        PTXBOARD_VAR=str(folder),
        PTXBOARD_ALLOWED_HOSTS="testserver,127.0.0.1",
        PTXBOARD_LOG_LEVEL="ERROR",
        PTXBOARD_SECRET_KEY="bench" * 10,
        DJANGO_SETTINGS_MODULE="webapp.settings",
    )
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("sync_catalogue", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)


def _fill(wanted: int) -> int:
    """Runs, turns, tallies and standings; how many turns there are."""
    from django.db import transaction

    from leaderboard.models import Turn
    from leaderboard.services.standings_update import standings_rebuild

    cells = ENTRANTS * len(PROBLEMS) * len(TARGETS)
    runs_each = max(1, round(wanted / cells / (VARIANTS * 4 * TURNS)))
    trajectories = max(1, round(wanted / cells / runs_each / (VARIANTS * TURNS)))
    dice, began = random.Random(1), time.perf_counter()
    for place, entrant in enumerate(_entrants()):
        with transaction.atomic():
            for problem, target in product(_problems(), TARGETS):
                for _ in range(runs_each):
                    _run(entrant, problem, target, trajectories, (place + 1) / ENTRANTS, dice)
    _evident_run()
    stored = time.perf_counter()
    standings_rebuild()
    turns = Turn.objects.count()
    rebuilt = time.perf_counter()
    print(f"\n{turns:,} turns on {_database()}, {runs_each} runs a cell, ", end="")
    print(f"made in {stored - began:.0f} s; all standings rebuilt in {rebuilt - stored:.0f} s\n")
    _analyse()
    return turns


def _entrants() -> list:
    from django.contrib.auth.models import User

    from leaderboard.services.entrants import model_entrant_of

    owner = User.objects.create_user("bench")
    return [model_entrant_of(owner=owner, model=f"model-{n:03d}") for n in range(ENTRANTS)]


def _problems() -> list:
    from leaderboard.models import Problem

    return list(Problem.objects.current().filter(name__in=PROBLEMS).order_by("position"))


def _run(entrant, problem, target: str, trajectories: int, skill: float, dice) -> None:
    from leaderboard.models import ModelRun, RunVariant, Trajectory, Turn

    run = ModelRun.objects.create(
        owner_id=entrant.owner_id,
        entrant=entrant,
        name=f"{entrant} on {problem.name}",
        model=entrant.display_name,
        api="openai-chat",
        base_url="https://models.example.org/v1",
        problem=problem,
        target=target,
        language="cuda",
        binding="c",
        level="schedule",
        trajectory_count=trajectories,
        turn_count=TURNS,
        target_speedup=1.2,
        max_parallel=1,
        state="DONE",
        harness_version="1",
        digest=SHA,
        created_at=NOW + timedelta(seconds=dice.randrange(10**6)),
        ended_at=NOW,
    )
    variants = RunVariant.objects.bulk_create(
        RunVariant(run=run, position=n, slug=f"v{n}", title="", packed_messages=BLOB, digest=SHA)
        for n in range(VARIANTS)
    )
    places = Trajectory.objects.bulk_create(
        Trajectory(
            run=run,
            variant=variant,
            number=number,
            state="DONE",
            ending="TURNS_USED",
            created_at=NOW,
            ended_at=NOW,
        )
        for variant, number in product(variants, range(1, trajectories + 1))
    )
    turns = (
        _turn(place, number, skill, dice) for place in places for number in range(1, TURNS + 1)
    )
    Turn.objects.bulk_create(turns, batch_size=500)


def _turn(place, number: int, skill: float, dice):
    from leaderboard.models import Turn

    correct = dice.random() < skill * (0.4 + 0.05 * number)
    return Turn(
        trajectory=place,
        number=number,
        packed_request=BLOB,
        request_digest=SHA,
        request_byte_count=2,
        packed_reply=BLOB,
        prompt_tokens=20_000,
        completion_tokens=3_000,
        reasoning_tokens=dice.randrange(20_000),
        cost_usd=0.05,
        extraction_state="EXTRACTED",
        verdict="PASSED" if correct else dice.choice(FAILURES),
        speedup=dice.uniform(0.05, 1.1) if correct else None,
        instruction_status=dice.choice(("executed", "absent")) if correct else "",
        called_at=NOW,
        replied_at=NOW,
        closed_at=NOW,
        previous_digest=SHA,
        call_digest=SHA,
        digest=SHA,
    )


def _evident_run() -> None:
    """One run whose turns have kernels with every stage's evidence, by the tests' own factories."""
    from django.contrib.auth.models import User

    from leaderboard.models import Problem
    from tests.leaderboard import factories, run_factories

    problem = Problem.objects.current().get(name=PROBLEMS[0])
    owner = User.objects.get(username="bench")
    run = run_factories.run(problem, owner=owner, model="evident", turns=TURNS)
    place = run_factories.trajectory(run)
    for number in range(TURNS):
        source = factories.KERNEL + f"// {number}\n" * 200
        run_factories.turn(place, kernel=source, speedup=0.5 + number / 20)
    run_factories.finish(run)


def _database() -> str:
    from django.db import connection

    if connection.vendor == "sqlite":
        return "SQLite"
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {cursor.fetchone()[0].split()[0]}"


def _analyse() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _addresses() -> dict[str, list[str]]:
    """Addresses by what they are; of some kinds many, taken in turn."""
    from leaderboard.models import Turn

    evident = Turn.objects.filter(submission__isnull=False).values_list("pk", flat=True)
    small = Turn.objects.filter(submission=None).values_list("pk", flat=True)
    last, dice = small.order_by("-pk").first(), random.Random(2)
    chosen = [dice.randrange(1, last) for _ in range(REQUESTS)]
    pinned = [f"/api/v1/boards/h200/?p={p / 1000}" for p in dice.sample(range(1, 1000), 40)]
    return {
        "board page": [f"/boards/{target}/" for target in TARGETS],
        "board, JSON": [f"/api/v1/boards/{target}/" for target in TARGETS],
        "board at another p, JSON": pinned,
        "Fast_p of a problem, JSON": [f"/api/v1/boards/h200/{p}/fast-p/" for p in PROBLEMS],
        "kernel board page": [f"/boards/h200/{PROBLEMS[0]}/"],
        "turn page, small": [
            f"/turns/{pk}/" for pk in chosen if pk in set(small.filter(pk__in=chosen))
        ],
        "turn page, whole evidence": [f"/turns/{pk}/" for pk in evident],
    }


def _report(turns: int) -> None:
    from django.test import Client

    from leaderboard.services import standings
    from leaderboard.views.kept import ANSWERS

    def clear() -> None:
        standings._board.cache_clear()
        ANSWERS.clear()

    client = Client()
    print(f"{'':38} {'p50 ms':>8} {'p95 ms':>8} {'CPU p95':>8} {'queries':>8} {'kB':>8}")
    for name, addresses in _addresses().items():
        if "turn page" not in name:
            _measure(f"{name}, just changed", client, addresses, before=clear)
        _measure(name, client, addresses, before=None)
    _measure_tags(client)
    _measure_turns()


def _measure(
    name: str, client, addresses: list[str], *, before: Callable[[], None] | None, **headers: str
) -> None:
    if not addresses:
        return
    client.get(addresses[0], **headers)
    times, size = Times(), 0
    for place in range(REQUESTS):
        if before:
            before()
        with times.one():
            answer = client.get(addresses[place % len(addresses)], **headers)
        assert answer.status_code in (200, 304), (name, answer.status_code)
        size = max(size, len(answer.content))
    if before:
        before()
    queries = _queries(lambda: client.get(addresses[-1], **headers))
    _line(name, times, f"{queries:8}", f"{size / 1e3:8.0f}")


def _measure_tags(client) -> None:
    for name, address in (
        ("board page, 304", "/boards/h200/"),
        ("JSON, 304", "/api/v1/boards/h200/"),
    ):
        tag = client.get(address).headers["ETag"]
        _measure(name, client, [address], before=None, HTTP_IF_NONE_MATCH=tag)


def _measure_turns() -> None:
    """What a closed turn adds to the transaction that closes it."""
    from django.db import transaction

    from leaderboard.models import ModelRun
    from leaderboard.services.standings_update import standing_update

    dice = random.Random(3)
    pks = list(ModelRun.objects.exclude(model="evident").values_list("pk", flat=True))
    times = Times()

    def update(run) -> None:
        with transaction.atomic():
            standing_update(run)

    for pk in dice.sample(pks, min(REQUESTS, len(pks))):
        run = ModelRun.objects.select_related("problem").get(pk=pk)
        with times.one():
            update(run)
    _line("standing of a closed turn", times, f"{_queries(lambda: update(run)):8}", f"{'':>8}")


def _queries(work: Callable[[], object]) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as seen:
        work()
    return len(seen)


class Times:
    """Milliseconds by the clock, and of this thread's CPU: a busy machine spoils only the first."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    @contextmanager
    def one(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.thread_time()
        yield
        self.wall.append(1e3 * (time.perf_counter() - wall))
        self.cpu.append(1e3 * (time.thread_time() - cpu))


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _line(name: str, times: Times, *more: str) -> None:
    middle, late, cpu = statistics.median(times.wall), _p95(times.wall), _p95(times.cpu)
    print(f"{name:38} {middle:8.1f} {late:8.1f} {cpu:8.1f} {' '.join(more)}", flush=True)


def _serve() -> None:
    """Requests a second behind gunicorn; whoever asks shares the machine's cores with it.

    On a busy machine the CPU that an answer took tells more: 2 cores give 2000 ms of it a second.
    """
    from tests.bench.load import ask

    addresses = _addresses()
    asked = [
        ("board page", addresses["board page"], False),
        ("board page, 304", addresses["board page"][:1], True),
        ("board, JSON", addresses["board, JSON"], False),
        ("board, JSON, 304", addresses["board, JSON"][:1], True),
        ("turn page, small", addresses["turn page, small"], False),
        ("turn page, whole evidence", addresses["turn page, whole evidence"], False),
    ]
    with _gunicorn() as (port, server):
        print(f"\n{'behind gunicorn, 2 workers':38} {'req/s':>8} {'CPU ms':>8} {'2 cores':>8}")
        for name, some, tag in asked:
            load = {"connections": CONNECTIONS, "tag": tag}
            ask(port, some, seconds=SECONDS / 2, **load)  # so that each worker is warm
            began = _cpu_seconds(server.pid)
            rate = ask(port, some, seconds=SECONDS, **load)
            used = _cpu_seconds(server.pid) - began
            each = 1e3 * used / (rate * SECONDS) if rate else float("nan")
            print(f"{name:38} {rate:8.0f} {each:8.2f} {2000 / each:8.0f}", flush=True)


def _cpu_seconds(parent: int) -> float:
    """User and system time of a process's children so far."""
    used = 0.0
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


@contextmanager
def _gunicorn() -> Iterator[tuple[int, subprocess.Popen]]:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "webapp.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", "2", "--threads", "4", "--worker-class", "gthread"]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield port, server
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
