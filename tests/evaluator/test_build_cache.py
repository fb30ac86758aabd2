"""Finished builds on disk: whole, checked, and not without end."""

import os

import pytest

from evaluator import build_cache
from evaluator.records.evaluation import StageResult
from evaluator.records.verdicts import Stage, Verdict


@pytest.fixture
def keep(make_work, tmp_path):
    folder = tmp_path / "cache"
    work = make_work("x")

    def save(key, data, age_seconds=0):
        artifact = work.store("library", data)
        result = StageResult(
            stage=Stage.COMPILATION, verdict=Verdict.PASSED, message=key, artifacts=(artifact,)
        )
        build_cache.save(folder, key, result, work)
        moment = 1_700_000_000 - age_seconds
        for path in (folder / f"{key}.json", folder / "objects" / artifact.sha256):
            if path.exists():
                os.utime(path, (moment, moment))

    save.load = lambda key: build_cache.load(folder, key, work)
    save.folder = folder
    return save


def test_what_was_saved_is_loaded(keep):
    keep("a", b"library")
    assert keep.load("a").message == "a"
    assert keep.load("b") is None


def test_an_entry_that_is_no_record_counts_as_absent(keep):
    keep("a", b"library")
    (keep.folder / "a.json").write_text('{"stage":')
    assert keep.load("a") is None


def test_an_entry_without_its_object_counts_as_absent(keep):
    keep("a", b"library")
    for path in (keep.folder / "objects").iterdir():
        path.unlink()
    assert keep.load("a") is None


def test_the_oldest_builds_go_first(keep, monkeypatch):
    monkeypatch.setattr(build_cache, "MOST_BUILDS", 2)
    keep("old", b"1", age_seconds=300)
    keep("middle", b"2", age_seconds=200)
    keep("new", b"3", age_seconds=100)
    assert keep.load("old") is None
    assert keep.load("middle").message == "middle"
    assert keep.load("new").message == "new"


def test_the_bytes_have_a_limit_too(keep, monkeypatch):
    monkeypatch.setattr(build_cache, "MOST_BYTES", 1500)
    keep("old", b"o" * 1000, age_seconds=300)
    keep("new", b"n" * 1000, age_seconds=100)
    assert keep.load("old") is None
    assert keep.load("new").message == "new"


def test_no_half_written_file_is_left(keep):
    keep("a", b"library")
    assert not [path for path in keep.folder.rglob(".new-*")]
