"""The scripts of answers that come with the project, as extraction reads them."""

import tomllib
from collections import Counter

import pytest
from django.conf import settings

from evaluator.agent.extraction import ExtractionState, extract
from examples.scripted.answers import TURNS, write

SCRIPTS = sorted((settings.BASE_DIR / "examples" / "scripted").glob("*.toml"))
LANGUAGES = {"gemm": "cuda", "gemm_host": "cpp"}
STATES = {
    "no-code": ExtractionState.NO_CODE,
    "truncated": ExtractionState.TRUNCATED,
    "reasoning-only": ExtractionState.REASONING_ONLY,
    "hidden-entry": ExtractionState.NO_ENTRY_POINT,
    "plain-hidden-entry": ExtractionState.NO_ENTRY_POINT,
}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_answer_is_read_as_its_name_says(path, tmp_path):
    script = tomllib.loads(path.read_text())
    assert write(script, tmp_path) == TURNS * len(script["trajectory"])
    seen = Counter()
    for trajectory in script["trajectory"]:
        variant = trajectory["variant"]
        seen[variant] += 1
        for turn, name in enumerate(trajectory["turns"]):
            place = tmp_path / variant / str(seen[variant]) / str(turn)
            found = state_of(place, LANGUAGES[path.stem])
            assert found is STATES.get(name, ExtractionState.EXTRACTED), name


def state_of(place, language) -> ExtractionState:
    reasoning = place.with_suffix(".reasoning.md")
    return extract(
        place.with_suffix(".md").read_text(),
        finish_reason="stop",
        reasoning=reasoning.read_text() if reasoning.exists() else "",
        language=language,
    ).state
