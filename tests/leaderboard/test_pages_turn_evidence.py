"""A turn's page: instructions, samples, verification, and every part as a download."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from evaluator.trajectory_file import verify_trajectory
from leaderboard.models import Turn
from tests.leaderboard import factories, run_factories
from tests.leaderboard.reading import Page


@pytest.fixture
def turn(problems, alice) -> Turn:
    run = run_factories.run(problems["gemm_n7168_k5120"], owner=alice)
    place = run_factories.trajectory(run)
    run_factories.turn(place)
    return run_factories.turn(place, kernel=factories.KERNEL, speedup=0.95)


def read(client: Client, turn: Turn, **query: str) -> Page:
    return Page(client.get(turn.get_absolute_url(), query))


def test_target_instructions_stand_with_their_counts(client: Client, turn):
    page = read(client, turn)
    row = page.text[page.text.index("Opcode Tier") :]
    assert "HGMMA mma 2 " in row
    assert reverse("machine-code", args=[turn.submission_id]) in page.links()


def test_every_sample_is_drawn_without_a_script(client: Client, turn):
    page = read(client, turn)
    assert "150 calls of the kernel and 150 of the baseline" in page.text
    assert sum(attrs.get("r") == "3" for tag, attrs in page.tags if tag == "circle") == 150
    assert "application/json" not in page.attributes("type")


def test_a_digest_is_recognised_or_not(client: Client, turn):
    assert "That is the SHA-256 of the call." in read(client, turn, digest=turn.call_digest).text
    upper = f" {turn.digest.upper()} "
    assert "That is the SHA-256 of the outcome." in read(client, turn, digest=upper).text
    assert "That is the SHA-256 of the request's bytes." in (
        read(client, turn, digest=turn.request_digest).text
    )
    for wrong in ("0" * 64, "<script>alert(1)</script>"):
        page = read(client, turn, digest=wrong)
        assert "None of this turn's digests is that." in page.text
        assert "<script>alert" not in page.html
    assert "digests is that" not in read(client, turn).text
    assert "digests is that" not in read(client, turn, digest=" ").text


def test_an_open_turn_does_not_take_an_empty_digest_for_its_own(client: Client, turn):
    Turn.objects.filter(pk=turn.pk).update(closed_at=None, digest="")
    assert "That is the SHA-256" not in read(client, turn, digest=" ").text


def test_the_commands_that_are_shown_verify(client: Client, turn, tmp_path):
    page = read(client, turn)
    address = reverse("api:trajectory-export", args=[turn.trajectory_id]) + "?format=ptxboard"
    assert f'curl -fsS "http://testserver{address}" -o trajectory.json' in page.text
    path = tmp_path / "trajectory.json"
    path.write_bytes(client.get(address).content)
    report = verify_trajectory(path)
    assert (report.turn_count, report.faults, report.last_digest) == (2, (), turn.digest)
    value = json.loads(path.read_text())
    value["turns"][1]["outcome"]["speedup"] = 9.9
    path.write_text(json.dumps(value))
    assert len(verify_trajectory(path).faults) == 1


def test_every_part_is_a_download(client: Client, turn):
    links = read(client, turn).links()
    for name in ("request", "reply", "answer", "reasoning", "code", "feedback"):
        address = reverse("turn-part", args=[turn.pk, name])
        assert address in links
        assert client.get(address).status_code == 200
    assert reverse("api:bundle", args=[turn.submission_id]) in links


def test_a_turn_without_a_kernel_has_no_empty_sections(client: Client, turn):
    page = read(client, Turn.objects.get(number=1))
    assert "Samples" not in page.text
    assert "in the machine code" not in page.text
    assert "Raw downloads" in page.text
