"""Machine code of a submission: every instruction, target instructions with their counts."""

import hashlib
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from leaderboard.models import Artifact, StageArtifact, StageRecord, Submission
from leaderboard.views.presenters import listings
from tests.leaderboard import factories
from tests.leaderboard.reading import Page

RECORDED = Path(settings.BASE_DIR) / "examples" / "recorded" / "gemm_wgmma_tma_ed679883.zip"
HOSTILE = """
\t\tFunction : _Z5plainv
        /*0000*/                   MOV R1, c[0x0][0x28] ;
\t\tFunction : <script>alert(1)</script>
        /*0010*/              @!P0 HGMMA.64x8x16.F32.BF16 R24, gdesc[UR8], R24 ;
        /*0020*/                   EXIT ;
"""


@pytest.fixture
def recorded(problems) -> Submission:
    """Our Hopper GEMM as it was measured on an H200."""
    call_command("load_evaluations", str(RECORDED), verbosity=0)
    return Submission.objects.get()


def page_of(one: Submission, query: str = "") -> str:
    return f"{one.get_absolute_url()}machine-code/{query}"


def with_listing(problem, text: str) -> Submission:
    one = factories.submission(by=factories.entrant("Bob"), problem=problem, name="it")
    factories.evaluated(one, factories.stages(problem.record))
    digest = hashlib.sha256(text.encode()).hexdigest()
    artifact = Artifact.objects.create(sha256=digest, byte_count=len(text), is_text=True)
    artifact.path.parent.mkdir(parents=True, exist_ok=True)
    artifact.path.write_text(text)
    record = StageRecord.objects.get(attempt__job__submission=one, stage="sass")
    StageArtifact.objects.create(stage_record=record, artifact=artifact, role="sass")
    return one


def test_target_instructions_stand_with_the_counts_of_a_real_run(client: Client, recorded):
    page = Page(client.get(page_of(recorded)))
    assert page.status == 200
    assert "1 gemm 776 36 4 888 576" in page.text
    row = "0x0690 HGMMA.64x256x16.F32.BF16 R24, gdesc[UR20], R24, UP0 mma"
    assert f"{row} 286 720 9 175 040" in page.text
    marked = [attrs for tag, attrs in page.tags if attrs.get("class") == "tier-mma"]
    assert {"id": "a0690", "class": "tier-mma"} in marked


def test_every_instruction_has_an_address_of_its_own(client: Client, recorded):
    page = Page(client.get(page_of(recorded)))
    anchors = [one for one in page.attributes("id") if re.fullmatch("a[0-9a-f]{4}", one)]
    assert len(anchors) == len(set(anchors)) == 776


def test_the_submission_leads_to_its_listing(client: Client, recorded):
    assert page_of(recorded) in Page(client.get(recorded.get_absolute_url())).links()


def test_it_opens_the_function_with_the_most_target_instructions(client: Client, problems):
    one = with_listing(problems["gemm_n7168_k5120"], HOSTILE)
    page = Page(client.get(page_of(one)))
    assert "@!P0 HGMMA.64x8x16.F32.BF16" in page.text
    assert "MOV R1" not in page.text
    assert "MOV R1" in Page(client.get(page_of(one, "?function=1"))).text


def test_names_of_functions_are_text(client: Client, problems):
    page = Page(client.get(page_of(with_listing(problems["gemm_n7168_k5120"], HOSTILE))))
    assert "<script>alert" not in page.html
    assert "<script>alert(1)</script>" in page.text


def test_a_long_function_is_paged_and_marks_lead_to_their_page(
    client: Client, recorded, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listings, "PAGE_ROWS", 100)
    monkeypatch.setattr("leaderboard.views.pages.listings.PAGE_ROWS", 100)
    page = Page(client.get(page_of(recorded)))
    assert "?function=1&page=2#a0690" in page.links()
    second = Page(client.get(page_of(recorded, "?function=1&page=2")))
    assert "a0690" in second.attributes("id")
    assert "a0000" not in second.attributes("id")
    assert "Page 2 of 8" in second.text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("?function=2", "There is no function '2'; they are numbered 1 to 1."),
        ("?function=x", "There is no function 'x'"),
        ("?page=2", "There is no page 2; the last one is 1."),
    ],
)
def test_what_there_is_not_is_told(client: Client, recorded, query: str, text: str):
    page = Page(client.get(page_of(recorded, query)))
    assert page.status == 404
    assert text in page.text


def test_a_submission_without_a_listing_says_so(client: Client, problems):
    gemm = problems["gemm_n7168_k5120"]
    one = factories.submission(by=factories.entrant("Bob"), problem=gemm, name="it")
    page = Page(client.get(page_of(one)))
    assert page.status == 404
    assert "No machine code of this submission is kept here." in page.text
    empty = with_listing(gemm, "nothing of the kind")
    assert "holds no instruction" in Page(client.get(page_of(empty))).text
