"""`ptxboard pack`, as typed."""

import json

import pytest

from evaluator.__main__ import main
from packs.pack import Level, find_pack
from packs.tokens import count_tokens


def test_it_lists_the_packs(capsys):
    assert main(["pack", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("PACK")
    for row, name in zip(rows[1:], ("hopper", "blackwell"), strict=True):
        pack = find_pack(name)
        cells = row.split()
        assert cells[:2] == [name, pack.version]
        assert cells[-1] == pack.digest[:12]
        assert str(pack.token_count(Level.CONTRACTS)) in cells


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
    pack = find_pack("blackwell")
    assert capsys.readouterr().out == f"{pack.digest}  blackwell {pack.version}\n"


def test_it_counts_tokens_and_finds_the_stored_ones_right(capsys):
    assert main(["pack", "count", "blackwell"]) == 0
    printed = capsys.readouterr().out
    total = sum(count_tokens(one.text) for one in find_pack("blackwell").files)
    assert printed.endswith(f"blackwell: 0 counts differ, {total} tokens in all files\n")


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
