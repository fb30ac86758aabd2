"""A model for tests: scripted answers over real HTTP, and the site's steps played one by one."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.scripted_endpoint import ScriptedServer
from leaderboard.models import ModelRun, Trajectory, Turn
from leaderboard.tasks import advance_trajectory
from tests.leaderboard.machine import Machine

RUNS = "/api/v1/model-runs/"
KEY = "sk-canary-1a2b3c4d5e6f"
SPEEDUP = re.compile(r"// speedup ([\d.]+)")
FAIL = re.compile(r"// fail (\w+) (\w+)")


def kernel(note: str) -> str:
    """An answer whose kernel gets what `note` says: `speedup 0.5`, `fail compilation TIMEOUT`."""
    head = 'extern "C" void run(const void* a, const void* b, void* c, void* stream) {'
    return f"Here it is.\n\n```cpp\n// {note}\n{head}\n}}\n```\n"


def run_body(url: str, **more: Any) -> dict[str, Any]:
    """One variant, one trajectory, three turns on the small GEMM of `host`."""
    return {
        "api": "openai-chat",
        "base_url": url,
        "model": "scripted-1",
        "key": KEY,
        "problems": ["gemm_n256_k256"],
        "target": "host",
        "trajectories": 1,
        "turns": 3,
        "parameters": {"send_labels": True},
        **more,
    }


@dataclass(slots=True)
class Model:
    """The scripted endpoint; answers are files, so they can change while a run goes on."""

    server: ScriptedServer
    folder: Path
    call_count: int = 0

    def __post_init__(self) -> None:
        reply = self.server.script.reply

        def counted(asked: Any) -> Any:
            self.call_count += 1
            return reply(asked)

        self.server.script.reply = counted

    @property
    def url(self) -> str:
        return self.server.url

    def say(self, *notes: str, trajectory: int | None = None) -> None:
        """The answers of turns 0, 1, ...: each a kernel with its note."""
        for turn, note in enumerate(notes):
            self.say_text(turn, kernel(note), trajectory=trajectory)

    def say_text(self, turn: int | str, text: str, *, trajectory: int | None = None) -> None:
        folder = self.folder / "default" / (str(trajectory) if trajectory else "")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{turn}.md").write_text(text)

    def fail(self, turn: int, error: str) -> None:
        """A scripted error before the answer of this turn; `error` is the file's JSON."""
        (self.folder / "default").mkdir(parents=True, exist_ok=True)
        (self.folder / "default" / f"{turn}.error.json").write_text(error)


def advance(doorbell: Any) -> int:
    """Answer every ring for a trajectory so far; how many there were."""
    rings = [name for queue, name in doorbell.rings if queue == "models"]
    doorbell.rings[:] = [ring for ring in doorbell.rings if ring[0] != "models"]
    for trajectory_id in rings:
        advance_trajectory(trajectory_id)
    return len(rings)


def evaluate(machine: Machine) -> int:
    """Build and run what waits, each kernel as its note says; how many orders there were."""
    count = 0
    while (answer := machine.claim()).status_code == 200:
        order, count = answer.json(), count + 1
        source = order["candidate"]["sources"][0]["content"]
        speedup, failure = SPEEDUP.search(source), FAIL.search(source)
        if failure and failure[1] in [one.stage.value for one in machine.results(order)]:
            machine.fail(order, failure[1], failure[2], "it does not work")
        else:
            machine.run(order, speedup=float(speedup[1]) if speedup else 0.5)
    assert answer.status_code == 204, answer.content
    return count


def play(doorbell: Any, machine: Machine) -> None:
    """Calls and evaluations in turn until nothing moves any more."""
    while advance(doorbell) + evaluate(machine):
        pass


def the_run() -> ModelRun:
    return ModelRun.objects.get()


def the_trajectory() -> Trajectory:
    return Trajectory.objects.get()


def turns(*fields: str) -> list[Any]:
    """Chosen columns of every turn in order of storing."""
    rows = Turn.objects.order_by("trajectory__number", "pk").values_list(*fields)
    return [row[0] for row in rows] if len(fields) == 1 else list(rows)
