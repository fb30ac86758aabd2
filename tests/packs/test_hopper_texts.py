import re

import pytest

from evaluator.agent.variants import variants_for
from evaluator.records.problem import Family
from evaluator.targets import Arch
from packs.pack import Level, find_pack
from packs.tokens import counted
from tests.packs import lint

PACK = find_pack("hopper")
TEXTS = [part for part in PACK.files if part.path.suffix == ".md"]
FAMILIES = [Family.GEMM, Family.MHA_FORWARD, Family.MHA_BACKWARD]


def test_it_calls_only_functions_that_exist():
    assert lint.unknown_calls(PACK) == {}


def test_it_cites_only_sources_that_it_lists_and_lists_no_other():
    assert lint.unknown_sources(PACK) == {}
    assert lint.unused_sources(PACK) == []


@pytest.mark.parametrize("row", [line for line in TEXTS[0].text.splitlines() if "| " in line])
def test_every_figure_of_the_parameters_has_a_source(row):
    heading = row.endswith("| source |") or row.startswith("| ---")
    assert heading or lint.CITATION.search(row.split("|")[-2])


@pytest.mark.parametrize("part", PACK.parts_of(Level.CONTRACTS), ids=lambda part: part.file)
def test_every_chapter_of_a_contract_names_a_source(part):
    for chapter in re.split(r"\n(?=[A-Z][^\n]*\n(?:- |1\. |\n\|))", part.text):
        told = lint.CITATION.search(lint.INLINE.sub("", chapter))
        assert told or len(chapter.splitlines()) <= 2, chapter


def test_its_base_text_has_between_20_and_30_thousand_tokens():
    assert 20_000 <= PACK.token_count(Level.CONTRACTS) <= 30_000


def test_its_token_counts_are_the_tokenizers():
    assert {one.file: one.token_count for one in PACK.files} == counted(PACK)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_has_the_schedules_of_every_variant_and_guidance(family):
    offered = {schedule.slug for schedule in PACK.schedules_for(family)}
    _, *scheduled = variants_for(family, Arch.HOPPER)
    assert len(scheduled) == 2
    assert all({variant.slug, *variant.schedules} <= offered for variant in scheduled)
    assert PACK.guidance_for(family)


def test_the_forward_schedule_walks_over_every_tile_and_carries_the_new_probabilities():
    """The two slips of the published Algorithm 2."""
    text = PACK.schedule("fa3-forward").text
    loop = text[text.index("for (int j = 1; j < TILES; ++j)") :]
    steps = [
        "wgmma_wait<1>()",
        "old = m",
        "exp2_scaled(s, c, m * c)",
        "wgmma_wait<0>()",
        "o *= shrink",
        "acc_to_a(p, s)",
        "\n}\n",
        "O += P V of the last tile",
        "o *= 1 / L",
    ]
    places = [loop.index(step) for step in steps]
    assert places == sorted(places)


def test_the_guidance_for_attention_has_the_seven_points():
    (advice,) = PACK.guidance_for(Family.MHA_FORWARD)
    assert re.findall(r"^(\d)\. \*\*", advice.text, re.MULTILINE) == list("1234567")
