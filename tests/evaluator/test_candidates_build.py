"""Every trick and every honest control meets the build lane as its `expect.toml` says.

What is to fail later must build here, so that the later stage is what catches it.
"""

import tomllib

import pytest

from evaluator.pipeline import run_lane
from evaluator.records.evidence import SassEvidence
from evaluator.records.verdicts import Lane, Tier, Verdict
from tests.evaluator.conftest import CANDIDATES

pytestmark = pytest.mark.slow
NAMES = sorted(folder.name for folder in CANDIDATES.iterdir() if (folder / "expect.toml").exists())
TIERS_IN_THE_BINARY = {
    "dummy_commit_group": Tier.CONTROL,
    "guarded_instruction": Tier.PAYLOAD,
    "honest_plain": None,
    "name_decoy": None,
    "token_wgmma": Tier.MMA,
    "unlaunched_tma": Tier.MMA,
}


def build_lane(bench, make_work, name):
    expected = tomllib.loads((CANDIDATES / name / "expect.toml").read_text())
    [source] = [path for path in (CANDIDATES / name).glob("kernel.*")]
    work = make_work(
        source.read_text(),
        target=expected["target"],
        problem=expected["problem"],
        binding=expected["binding"],
        entry=source.name,
    )
    return expected, list(run_lane(work, bench, Lane.BUILD))


@pytest.mark.parametrize("name", NAMES)
def test_the_build_lane_gives_the_verdict_that_the_trick_expects(bench, make_work, name):
    expected, results = build_lane(bench, make_work, name)
    last = results[-1]
    if expected["stage"] in ("policy", "compilation"):
        assert (last.stage.value, last.verdict.value) == (expected["stage"], expected["verdict"])
        assert expected["message"] in last.message
    else:
        assert last.verdict is Verdict.PASSED, last.message
    if name in TIERS_IN_THE_BINARY:
        assert isinstance(last.evidence, SassEvidence)
        assert last.evidence.tier is TIERS_IN_THE_BINARY[name]


def test_the_tricks_with_a_known_tier_are_still_there():
    assert set(TIERS_IN_THE_BINARY) <= set(NAMES)
    assert len(NAMES) >= 41
