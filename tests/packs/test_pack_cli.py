"""`ptxboard pack`, as typed."""

import json
import shutil

import pytest

from evaluator.__main__ import main
from evaluator.cli import pack as cli_pack
from packs import pack
from packs.pack import Level, find_pack
from packs.tokens import count_tokens


def test_it_lists_the_packs(capsys):
    assert main(["pack", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("PACK")
    for row, name in zip(rows[1:], ("hopper", "blackwell"), strict=True):
        known = find_pack(name)
        cells = row.split()
        assert cells[:2] == [name, known.version]
        assert cells[-1] == known.digest[:12]
        assert str(known.token_count(Level.CONTRACTS)) in cells


def test_it_lists_them_as_json(capsys):
    assert main(["pack", "list", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["name"], second["name"]) == ("hopper", "blackwell")
    assert second["digest"] == find_pack("blackwell").digest
    assert second["tokens"]["functions"] == find_pack("blackwell").token_count(Level.FUNCTIONS)
    assert second["schedules"]["fa4-forward"] > 0


def test_it_prints_the_very_text_of_a_level(capsys):
    assert main(["pack", "show", "blackwell", "--level", "+functions"]) == 0
    assert capsys.readouterr().out == find_pack("blackwell").text(Level.FUNCTIONS)


def test_a_schedule_brings_its_level_along(capsys):
    assert main(["pack", "show", "blackwell", "--schedule", "multicast"]) == 0
    expected = find_pack("blackwell").text(Level.SCHEDULE, schedules=["multicast"])
    assert capsys.readouterr().out == expected
    assert "## Schedules" in expected


def test_it_prints_digests(capsys):
    assert main(["pack", "digest", "blackwell"]) == 0
    known = find_pack("blackwell")
    assert capsys.readouterr().out == f"{known.digest}  blackwell {known.version}\n"


def test_it_counts_tokens_and_finds_the_stored_ones_right(capsys):
    assert main(["pack", "count", "blackwell"]) == 0
    printed = capsys.readouterr().out
    total = sum(count_tokens(one.text) for one in find_pack("blackwell").files)
    assert printed.endswith(f"blackwell: 0 counts differ, {total} tokens in all files\n")


def test_writing_counts_covers_packs_that_share_a_file(capsys, monkeypatch, tmp_path):
    """On copies: a header of Hopper's changes, and Blackwell's manifest names it too."""
    for name in pack.PACKS:
        shutil.copytree(pack.ROOT / name, tmp_path / name)
    with (tmp_path / "hopper/templates/sync.cuh").open("a") as header:
        header.write("// one more line\n")
    monkeypatch.setattr(cli_pack, "find_pack", lambda name: pack.load_pack(tmp_path / name))
    assert main(["pack", "count", "hopper"]) == 1
    assert "1 counts differ" in capsys.readouterr().out
    assert main(["pack", "count", "hopper", "--write"]) == 0
    assert capsys.readouterr().out.endswith(
        "hopper: 1 counts written\nblackwell: 1 counts written\n"
    )
    assert main(["pack", "count", "blackwell"]) == 0


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["show", "volta"], "pack 'volta' is not known; known packs: hopper, blackwell"),
        (["show", "blackwell", "--schedule", "spiral"], "no schedule 'spiral'; it has: "),
        (["digest", "volta"], "pack 'volta' is not known"),
        (["count", "volta"], "pack 'volta' is not known"),
    ],
)
def test_it_says_what_there_is(capsys, typed, message):
    assert main(["pack", *typed]) == 2
    assert message in capsys.readouterr().err


def test_it_names_the_levels(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["pack", "show", "blackwell", "--level", "all"])
    assert exit_.value.code == 2
    said = capsys.readouterr().err
    assert "'all' is not one of: parameters, functions, contracts, schedule" in said
