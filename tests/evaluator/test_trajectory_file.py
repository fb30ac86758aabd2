"""A trajectory's export is checked offline, link by link."""

import json
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.bundle import NotABundle
from evaluator.records.base import digest_of, sha256_hex
from evaluator.trajectory_file import FORMAT, verify_trajectory


def turn(previous: str, number: int, *, closed: bool = True) -> dict:
    call = {
        "number": number,
        "request_digest": sha256_hex(b'{"messages": []}'),
        "reply_digest": digest_of("reply"),
        "answer_digest": digest_of("answer"),
        "reasoning_digest": digest_of(""),
    }
    call_digest = digest_of({"previous": previous, "record": call})
    outcome = {"verdict": "PASSED", "speedup": 0.5}
    return {
        "request": {"body": '{"messages": []}'},
        "reply": "reply",
        "answer": "answer",
        "reasoning": "",
        "call": call,
        "outcome": outcome,
        "previous_digest": previous,
        "call_digest": call_digest,
        "digest": digest_of({"previous": call_digest, "record": outcome}) if closed else "",
    }


def export() -> dict:
    settings = {"format": "ptxboard.model-run/1", "model": "opus", "target_speedup": 1.2}
    head = digest_of(settings)
    first = turn(head, 1)
    second = turn(first["digest"], 2)
    return {"format": FORMAT, "run": {**settings, "digest": head}, "turns": [first, second]}


def written(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(value))
    return path


def faults(tmp_path: Path, value: dict) -> tuple[str, ...]:
    return verify_trajectory(written(tmp_path, value)).faults


def test_a_whole_chain_holds(tmp_path: Path, capsys):
    value = export()
    report = verify_trajectory(written(tmp_path, value))
    assert (report.turn_count, report.faults) == (2, ())
    assert report.last_digest == value["turns"][1]["digest"]
    assert main(["verify", str(tmp_path / "trajectory.json")]) == 0
    assert capsys.readouterr().out == (
        f"trajectory.json: the chain of 2 turns holds\nlast digest {value['turns'][1]['digest']}\n"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda value: value["run"].update(target_speedup=1.0), "run: says digest"),
        (lambda value: value["turns"][0].update(answer="better"), "turn 1: its answer is not"),
        (lambda value: value["turns"][0].update(reply="better"), "turn 1: its reply is not"),
        (lambda value: value["turns"][1].update(reasoning="x"), "turn 2: its reasoning is not"),
        (lambda value: value["turns"][1]["request"].update(body="{}"), "turn 2: its request has"),
        (lambda value: value["turns"][0]["call"].update(number=9), "turn 1: says call_digest"),
        (lambda value: value["turns"][1]["outcome"].update(speedup=9.0), "turn 2: says digest"),
        (lambda value: value["turns"].pop(0), "turn 1: follows"),
        (lambda value: value["turns"].reverse(), "turn 1: follows"),
    ],
)
def test_every_change_is_found(tmp_path: Path, capsys, change, fault: str):
    value = export()
    change(value)
    found = faults(tmp_path, value)
    assert any(one.startswith(fault) for one in found), found
    assert main(["verify", str(tmp_path / "trajectory.json")]) == 1


def test_an_open_turn_has_no_second_link_yet(tmp_path: Path):
    value = export()
    value["turns"][1] = turn(value["turns"][0]["digest"], 2, closed=False)
    report = verify_trajectory(written(tmp_path, value))
    assert (report.faults, report.last_digest) == ((), value["turns"][0]["digest"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "not in the format ptxboard.trajectory/1"),
        ({"format": "mini-swe-agent-1.1"}, "not in the format"),
        ({"format": FORMAT, "run": {"digest": "0"}}, "a part is missing"),
        ({"format": FORMAT, "run": {"digest": "0"}, "turns": [1]}, "a part is missing"),
    ],
)
def test_what_is_no_export_is_refused_in_words(tmp_path: Path, capsys, value, text: str):
    path = written(tmp_path, value)
    with pytest.raises(NotABundle, match=text):
        verify_trajectory(path)
    assert main(["verify", str(path)]) == 2


def test_a_file_that_is_not_there_or_no_json_is_told(tmp_path: Path):
    with pytest.raises(NotABundle, match="No such file"):
        verify_trajectory(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(NotABundle, match=r"broken\.json"):
        verify_trajectory(broken)
