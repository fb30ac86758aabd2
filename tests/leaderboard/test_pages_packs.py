"""Packs over HTTP: pages to read them, the very text, and REST."""

import pytest
from django.test import Client

from evaluator.records.problem import Family
from leaderboard.views.presenters.packs import source_anchor
from packs.pack import PACKS, Level, find_pack
from tests.leaderboard.reading import Page

PACK = find_pack("blackwell")


def test_it_lists_every_pack_with_version_digest_and_tokens(client: Client, db):
    page = Page(client.get("/packs/"))
    for name in PACKS:
        pack = find_pack(name)
        assert f"{pack.title} {pack.evidence}" in page.text
        assert pack.digest in page.attributes("title")
        assert f"/packs/{name}/" in page.links()
        assert f"{pack.token_count(Level.CONTRACTS):,}".replace(",", " ") in page.text.replace(
            "\u202f", " "
        )


def test_it_says_on_every_page_of_the_blackwell_pack_that_it_was_never_run(client: Client, db):
    for level in Level:
        page = Page(client.get("/packs/blackwell/", {"level": level.value}))
        assert "Compiled for sm_100a and checked in the machine code; never run by us." in page.text


@pytest.mark.parametrize("level", Level)
def test_it_shows_the_parts_of_a_level_and_of_those_below(client: Client, db, level):
    page = Page(client.get("/packs/blackwell/", {"level": level.value}))
    shown = {link.removeprefix("#") for link in page.links() if link.startswith("#")}
    for part in PACK.files:
        assert part.title in page.text
        assert (_anchor(part.file) in page.attributes("id")) is level.holds(part.level)
        assert (_anchor(part.file) in shown) is level.holds(part.level)


def _anchor(file: str) -> str:
    return file.replace("../", "").rpartition(".")[0].replace("/", "-")


def test_it_shows_contracts_where_no_level_is_asked_for(client: Client, db):
    plain = client.get("/packs/blackwell/").content
    assert plain == client.get("/packs/blackwell/?level=contracts").content


def test_it_renders_tables_code_and_citations(client: Client, db):
    page = Page(client.get("/packs/blackwell/?level=schedule"))
    assert "148, on two dies of 74" in page.text
    assert "| --- |" not in page.text
    assert "```" not in page.text
    assert f"#{source_anchor('ptx:tmem')}" in page.links()
    assert source_anchor("ptx:tmem") in page.attributes("id")
    assert "tcgen05.mma" in page.text


def test_it_links_every_source_that_has_an_address(client: Client, db):
    links = Page(client.get("/packs/blackwell/")).links()
    for source in PACK.sources:
        assert source.url is None or source.url in links


@pytest.mark.parametrize("level", list(Level)[:-1])
def test_the_download_is_the_very_text_of_the_level(client: Client, db, level):
    response = client.get(f"/packs/blackwell.txt?level={level.value}")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response.content.decode() == PACK.text(level)


def test_the_download_takes_schedules(client: Client, db):
    one = client.get("/packs/blackwell.txt?level=schedule&schedule=multicast").content.decode()
    assert one == PACK.text(Level.SCHEDULE, schedules=["multicast"])
    everything = client.get("/packs/blackwell.txt?level=schedule").content.decode()
    assert everything == PACK.text(Level.SCHEDULE, schedules=[s.slug for s in PACK.schedules])


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/packs/volta/", "There is no pack 'volta'; packs: hopper, blackwell."),
        ("/packs/volta.txt", "There is no pack 'volta'; packs: hopper, blackwell."),
        ("/packs/blackwell/?level=all", "There is no level 'all'; levels: parameters, functions"),
        ("/packs/blackwell.txt?level=schedule&schedule=spiral", "has no schedule 'spiral'"),
        ("/packs/blackwell.txt?schedule=multicast", "only level schedule holds schedules"),
    ],
)
def test_it_says_what_there_is(client: Client, db, address, said):
    response = client.get(address)
    assert response.status_code == 404
    assert said in Page(response).text


def test_rest_lists_packs(client: Client, db):
    packs = client.get("/api/v1/packs/").json()
    assert [pack["name"] for pack in packs] == list(PACKS)
    second = packs[1]
    assert second["digest"] == PACK.digest
    assert second["url"] == "http://testserver/api/v1/packs/blackwell/"
    assert second["page"] == "http://testserver/packs/blackwell/"
    assert second["tokens"] == {level.value: PACK.token_count(level) for level in list(Level)[:-1]}


def test_rest_gives_one_pack_with_its_text(client: Client, db):
    query = {"level": "schedule", "schedule": ["fa4-forward"], "guidance": "mha_forward"}
    answer = client.get("/api/v1/packs/blackwell/", query).json()
    assert answer["text"] == PACK.text(
        Level.SCHEDULE, schedules=["fa4-forward"], guidance_for=Family.MHA_FORWARD
    )
    assert [part["file"] for part in answer["parts"]] == [part.file for part in PACK.files]
    assert {"id": "derived", "title": PACK.sources[-1].title, "url": None} in answer["sources"]


def test_rest_gives_contracts_where_no_level_is_asked_for(client: Client, db):
    answer = client.get("/api/v1/packs/blackwell").json()
    assert (answer["level"], answer["text"]) == ("contracts", PACK.text(Level.CONTRACTS))


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/api/v1/packs/volta/", 404, "There is no pack 'volta'; packs: hopper, blackwell."),
        ("/api/v1/packs/blackwell/?level=all", 400, "'all' is not one of: parameters, functions"),
        ("/api/v1/packs/blackwell/?guidance=x", 400, "'x' is not one of: gemm, mha_forward"),
        ("/api/v1/packs/blackwell/?schedule=multicast", 400, "only level schedule holds"),
        (
            "/api/v1/packs/blackwell/?level=schedule&schedule=spiral",
            400,
            "pack blackwell has no schedule 'spiral'; it has: warp-specialisation",
        ),
    ],
)
def test_rest_refuses_in_problem_json(client: Client, db, address, status, said):
    response = client.get(address)
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert said in response.content.decode()
