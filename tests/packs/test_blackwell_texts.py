import re

import pytest

from evaluator.agent.variants import variants_for
from evaluator.records.problem import Family
from evaluator.targets import Arch
from packs.pack import Level, find_pack
from packs.tokens import counted
from tests.packs import lint

PACK = find_pack("blackwell")


def test_it_calls_only_functions_that_exist():
    assert lint.unknown_calls(PACK) == {}


def test_it_cites_only_sources_that_it_lists_and_lists_no_other():
    assert lint.unknown_sources(PACK) == {}
    assert lint.unused_sources(PACK) == []


@pytest.mark.parametrize(
    "part", [p for p in PACK.files if p.path.suffix == ".md"], ids=lambda part: part.file
)
def test_every_chapter_of_a_text_names_a_source(part):
    for chapter in re.split(r"\n(?=\*\*)", lint.FENCED.sub("", part.text)):
        assert lint.CITATION.search(lint.INLINE.sub("", chapter)), chapter


def test_it_says_that_it_was_never_run():
    assert "never run by us" in PACK.evidence
    assert PACK.evidence in PACK.text(Level.PARAMETERS)
    for schedule in PACK.schedules:
        assert "Never run by us." in schedule.text, schedule.slug


def test_its_full_text_has_between_20_and_30_thousand_tokens():
    assert 20_000 <= PACK.token_count(Level.CONTRACTS) <= 30_000


def test_its_token_counts_are_the_tokenizers():
    assert {one.file: one.token_count for one in PACK.files} == counted(PACK)


@pytest.mark.parametrize("family", [Family.GEMM, Family.MHA_FORWARD, Family.MHA_BACKWARD])
def test_it_has_the_schedules_of_every_variant_and_guidance(family):
    offered = {schedule.slug for schedule in PACK.schedules_for(family)}
    _, *scheduled = variants_for(family, Arch.BLACKWELL)
    assert len(scheduled) == 2
    assert all({variant.slug, *variant.schedules} <= offered for variant in scheduled)
    assert PACK.guidance_for(family)


def test_no_line_of_its_texts_is_wider_than_a_page():
    wide = [
        f"{part.file}: {line}"
        for part in PACK.files
        if not part.file.startswith("../")
        for line in part.text.splitlines()
        if len(line) > 130 and not line.startswith("|")
    ]
    assert wide == []
