"""The model run that comes with the project, recorded on an H200: 3 variants x 4 x 8 turns."""

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from leaderboard.models import ModelRun, Turn

RUNS = sorted((settings.BASE_DIR / "examples" / "recorded" / "runs").glob("*.zip"))
COUNTS = {
    "PASSED": 45,
    "INCORRECT_NUMERICAL": 21,
    "COMPILE_ERROR": 16,
    "SANITIZER_ERROR": 4,
    "BANNED_LIBRARY": 3,
    "NO_CODE": 2,
    "NO_ENTRY_POINT": 2,
    "TIMEOUT": 1,
    "TRUNCATED": 1,
    "REASONING_ONLY": 1,
}
# p: turns of 96 that are correct and faster, of any kind and with target instructions
FASTER = {0.0: (45, 31), 0.5: (31, 31), 0.75: (26, 26), 0.9: (26, 26), 1.0: (17, 17)}


@pytest.fixture
def answer(problems: object, client: Client) -> dict:
    (path,) = RUNS
    call_command("load_model_run", str(path), verbosity=0)
    run = ModelRun.objects.get()
    return client.get(f"/api/v1/model-runs/{run.pk}/").json()


def test_the_recorded_run_has_every_turn_and_its_numbers(answer: dict):
    assert answer["state"] == "DONE"
    assert (answer["model"], answer["target"]) == ("scripted-gemm", "h200")
    assert [len(row["turns"]) for row in answer["trajectories"]] == [8] * 12
    assert answer["turn_counts"] == COUNTS
    metrics = answer["metrics"]
    assert (metrics["planned_turns"], metrics["taken_turns"]) == (96, 96)
    for kind, column in (("any", 0), ("target_instructions", 1)):
        seen = {row["p"]: row["value"] * 96 for row in metrics[kind]["fast_p"]}
        wanted = {p: counts[column] for p, counts in FASTER.items()}
        assert seen == pytest.approx(wanted)
    assert metrics["any"]["correctness_rate"]["first"] == pytest.approx(1 / 12)
    assert metrics["target_instructions"]["best_speedup"]["first"] is None
    assert metrics["any"]["best_speedup"]["eighth"] == pytest.approx(1.00826, abs=1e-5)


def test_every_turn_of_the_recorded_run_can_be_read(answer: dict, client: Client):
    assert client.get(f"/model-runs/{answer['id']}/").status_code == 200
    for row in answer["trajectories"]:
        assert client.get(f"/trajectories/{row['id']}/").status_code == 200
        last = row["turns"][-1]
        assert client.get(f"/turns/{last['id']}/").status_code == 200
    chained = Turn.objects.exclude(digest="").count()
    assert chained == 96
