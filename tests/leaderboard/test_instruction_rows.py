"""Kernels whose target instructions did not run, or were not counted, keep verdict and speed."""

import json
from pathlib import Path

import pytest
from django.test import Client

from evaluator.records.evidence import CountersEvidence
from evaluator.records.verdicts import InstructionStatus, Stage
from leaderboard.models import Submission
from tests.leaderboard import factories
from tests.leaderboard.reading import Page

EVIDENCE = Path(__file__).parents[1] / "evidence" / "counters"
BOARD = "boards/h200/gemm_n7168_k5120/"
REFUSED = "counters not permitted: the driver keeps them for administrators"


def never_ran() -> CountersEvidence:
    value = json.loads((EVIDENCE / "h200_guarded_instruction.json").read_text())
    return CountersEvidence.model_validate(value["evidence"])


def refused() -> CountersEvidence:
    return CountersEvidence(
        status=InstructionStatus.UNKNOWN, reason=REFUSED, work_share_reason=REFUSED
    )


@pytest.fixture
def ranked(problems, alice_entrant):
    """A passed kernel with these counts, on the board of the H200."""

    def make(counted: CountersEvidence) -> Submission:
        gemm = problems["gemm_n7168_k5120"]
        one = factories.submission(by=alice_entrant, problem=gemm, name="counted")
        results = factories.stages(gemm.record, speedup=0.5)
        for place, result in enumerate(results):
            if result.stage is Stage.COUNTERS:
                counted = counted.model_copy(update={"launches": factories.launches()})
                results[place] = result.model_copy(update={"evidence": counted})
        return factories.evaluated(one, results)

    return make


@pytest.mark.parametrize(
    ("counted", "status"), [(never_ran(), "not_executed"), (refused(), "unknown")]
)
def test_it_ranks_by_its_speed_and_says_what_is_known(ranked, visitor_api, counted, status):
    one = ranked(counted)
    (row,) = visitor_api.get(f"/api/v1/{BOARD}").json()["rows"]
    assert (row["rank"], row["speedup"]) == (1, 0.5)
    assert row["target_instructions"]["status"] == status
    assert row["target_instructions"]["work_share"] is None
    seen = visitor_api.get(f"/api/v1/submissions/{one.pk}/").json()
    assert seen["verdict"] == "PASSED"
    assert seen["target_instructions"]["status"] == status


def test_the_board_never_marks_a_kernel_that_did_not_run_its_instructions(client: Client, ranked):
    ranked(never_ran())
    text = Page(client.get(f"/{BOARD}")).text
    assert "0.500" in text
    assert "not executed" in text


def test_the_page_tells_author_and_operator_why_nothing_was_counted(client: Client, ranked):
    one = ranked(refused())
    assert REFUSED in Page(client.get(one.get_absolute_url())).text
