"""A model run's archive: it moves to another site whole, verifies, and is refused when changed."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from evaluator.records.base import canonical_json, digest_of
from leaderboard.models import (
    Artifact,
    AuditEntry,
    Entrant,
    Evaluation,
    ModelRun,
    ModelStanding,
    Problem,
    StageArtifact,
    StageRecord,
    Submission,
    Turn,
)
from leaderboard.services.artifacts import artifact_put
from tests.leaderboard import factories, run_factories
from tests.leaderboard.reading import Page
from tests.leaderboard.runs import RUNS, play, run_body

LIBRARY = b"\x7fELF library" * 1000
LOG = b"ptxas info: 168 registers\n"


@pytest.fixture
def run(problems: dict[str, Problem], alice: User) -> ModelRun:
    """Two trajectories: one excluded turn, one shared kernel, one that was cancelled."""
    gemm = problems["gemm_n7168_k5120"]
    made = run_factories.run(gemm, owner=alice, trajectories=2, key_ciphertext="canary-cipher")
    first, second = made.trajectories.in_order()
    broken = run_factories.failed(made, "compilation", "COMPILE_ERROR")
    run_factories.turn(first, kernel=factories.KERNEL, results=broken, reasoning="Hm.")
    lost = run_factories.turn(first, kernel=factories.KERNEL, results=[], excluded="disk full")
    Submission.objects.filter(pk=lost.submission_id).update(state="FAULTED", message="Disk full.")
    passed = run_factories.turn(first, kernel=factories.KERNEL, speedup=1.31, cost_usd=0.25)
    run_factories.turn(second, submission=passed.submission, extraction_state="EXTRACTED",
                       is_shared=True)  # fmt: skip
    run_factories.turn(second)
    stopped = run_factories.turn(second, kernel=factories.KERNEL, results=[], excluded="Cancelled.")
    Submission.objects.filter(pk=stopped.submission_id).update(state="CANCELLED", message="Gone.")
    keep_artifacts(passed.submission)
    run_factories.end(first, "TARGET_MET", "met")
    run_factories.end(second, "CANCELLED", "Cancelled by alice.")
    return run_factories.finish(made)


def keep_artifacts(submission: Submission) -> None:
    """A library and a log, named by the record as a worker would."""
    evaluation = submission.evaluation
    named = [
        {"role": role, "sha256": hashlib.sha256(data).hexdigest(), "byte_count": len(data)}
        for role, data in (("library", LIBRARY), ("log", LOG))
    ]
    previous = submission.candidate_digest
    for record in StageRecord.objects.filter(attempt__job=evaluation.job).order_by("id"):
        value = json.loads(record.result_json)
        if record.stage == "compilation":
            value["artifacts"] = named
        record.result_json, record.previous_digest = canonical_json(value), previous
        record.digest = previous = digest_of({"previous": previous, "record": value})
        record.save()
        if record.stage == "compilation":
            for one, data in zip(named, (LIBRARY, LOG), strict=True):
                artifact, _ = artifact_put(sha256=one["sha256"], chunks=[data])
                StageArtifact.objects.create(
                    stage_record=record, artifact=artifact, role=one["role"]
                )
    value = json.loads(evaluation.record_json)
    stages = StageRecord.objects.filter(attempt__job=evaluation.job).order_by("id")
    value["stages"] = [json.loads(one.result_json) for one in stages]
    Evaluation.objects.filter(pk=evaluation.pk).update(
        record_json=canonical_json(value), chain_digest=previous
    )


@pytest.fixture
def exported(run: ModelRun, tmp_path: Path) -> Path:
    call_command("export_model_run", str(run.pk), str(tmp_path / "out"), verbosity=0)
    (path,) = (tmp_path / "out").iterdir()
    return path


def opened(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forget(settings: Any, tmp_path: Path) -> None:
    """Another site: the same catalogue, nothing handed in, no artifact."""
    while leaves := Turn.objects.filter(children=None):
        leaves.delete()
    ModelRun.objects.all().delete()
    ModelStanding.objects.all().delete()
    Evaluation.objects.all().delete()
    Submission.objects.all().delete()
    Artifact.objects.all().delete()
    Entrant.objects.filter(kind="model").delete()
    settings.PTXBOARD_ARTIFACTS = tmp_path / "elsewhere"


def shown(client: Client, run_id: Any) -> dict[str, Any]:
    """What the API tells of a run, its turns and their records, numbers of rows left out."""
    value = client.get(f"/api/v1/model-runs/{run_id}/").json()
    del value["owner"], value["endpoint"]["key"]
    for trajectory in value["trajectories"]:
        for turn in trajectory["turns"]:
            turn["whole"] = client.get(turn["url"]).json()
            for one in (turn, turn["whole"]):
                del one["url"], one["html_url"], one["id"]
    return value


def test_it_moves_to_another_site_as_it_was(client, run, exported, tmp_path, settings):
    before = shown(client, run.pk)
    forget(settings, tmp_path)
    for _ in range(2):
        call_command("load_model_run", str(exported), verbosity=0)
    assert shown(client, run.pk) == before
    assert AuditEntry.objects.filter(action="imported", subject=str(run.pk)).count() == 1
    assert Turn.objects.count() == 6
    assert all(one.digest == one.computed_digest for one in Turn.objects.all())
    shared = Turn.objects.get(is_shared=True)
    assert shared.submission.evaluation.speedup == pytest.approx(1.31)
    owner = ModelRun.objects.get().owner
    assert (owner.is_active, owner.has_usable_password()) == (False, False)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_the_service_made_moves_whole_too(
    client, problems, alice_api, model, machine, doorbell, tmp_path, settings
):
    model.say("fail compilation COMPILE_ERROR", "speedup 0.7", "speedup 0.7")
    model.say("speedup 1.3", trajectory=2)
    body = run_body(model.url, trajectories=2, turns=3)
    made = alice_api.post(RUNS, body, format="json").json()["runs"][0]
    play(doorbell, machine)
    call_command("export_model_run", made["id"], str(tmp_path / "out"), verbosity=0)
    (path,) = (tmp_path / "out").iterdir()
    before = shown(client, made["id"])
    assert [len(one["turns"]) for one in before["trajectories"]] == [3, 1]
    forget(settings, tmp_path)
    call_command("load_model_run", str(path), verbosity=0)
    assert shown(client, made["id"]) == before
    page = Page(client.get(f"/model-runs/{made['id']}/"))
    assert "Done" in page.text
    assert "127.0.0.1" in page.text
    for turn in Turn.objects.all():
        text = Page(client.get(turn.get_absolute_url())).text
        assert "they agree with what is stored" in text


def test_what_was_loaded_goes_out_as_it_came_in(client, run, exported, tmp_path, settings):
    forget(settings, tmp_path)
    call_command("load_model_run", str(exported), verbosity=0)
    call_command("export_model_run", str(run.pk), str(tmp_path / "again"), verbosity=0)
    (again,) = (tmp_path / "again").iterdir()
    first, second = opened(exported), opened(again)
    assert set(first) == set(second)
    for name in set(first) - {"manifest.json"}:
        if not name.endswith(".zip"):
            assert first[name] == second[name], name


def test_it_holds_no_key_and_leaves_the_libraries_out(run, exported):
    files = opened(exported)
    text = b"".join(files.values())
    assert b"canary" not in text
    assert b"secret-path" not in text
    library, log = (hashlib.sha256(one).hexdigest() for one in (LIBRARY, LOG))
    assert json.loads(files["manifest.json"])["not_kept"] == {library: "library"}
    assert f"artifacts/{log}" in files
    assert f"artifacts/{library}" not in files
    assert exported.name == f"{'coder-32b-on-gemm_n7168_k5120'}_{str(run.pk)[:8]}.zip"


def test_it_keeps_libraries_where_asked_to(run, tmp_path, settings):
    call_command("export_model_run", str(run.pk), str(tmp_path / "all"), "--libraries", verbosity=0)
    (path,) = (tmp_path / "all").iterdir()
    assert opened(path)[f"artifacts/{hashlib.sha256(LIBRARY).hexdigest()}"] == LIBRARY


def test_the_page_of_a_kernel_says_that_its_library_was_not_kept(
    client, run, exported, tmp_path, settings
):
    forget(settings, tmp_path)
    call_command("load_model_run", str(exported), verbosity=0)
    passed = Submission.objects.get(evaluations__speedup__isnull=False)
    page = Page(client.get(passed.get_absolute_url()))
    assert "library of compilation not kept here" in page.text
    assert hashlib.sha256(LIBRARY).hexdigest()[:12] in page.text
    log = f"/api/v1/artifacts/{hashlib.sha256(LOG).hexdigest()}/"
    assert log in page.links()


def test_it_verifies_by_its_own_readme(exported):
    files = opened(exported)
    manifest = json.loads(files["manifest.json"])
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256(files[name]).hexdigest() == digest
    head = digest_of(json.loads(files["run.json"])["settings"])
    told = json.loads(files["trajectories/01.json"])
    previous = head
    for turn in told["turns"]:
        assert turn["previous_digest"] == previous
        assert digest_of({"previous": previous, "record": turn["call"]}) == turn["call_digest"]
        previous = digest_of({"previous": turn["call_digest"], "record": turn["outcome"]})
        assert turn["digest"] == previous
    assert len(told["turns"]) == 3


def test_two_exports_are_the_same_bytes(run, exported, tmp_path):
    call_command("export_model_run", str(run.pk), str(tmp_path / "b"), verbosity=0)
    (second,) = (tmp_path / "b").iterdir()
    assert second.read_bytes() == exported.read_bytes()


def test_a_run_that_goes_on_is_not_exported(run, tmp_path):
    ModelRun.objects.update(state="PAUSED", ended_at=None)
    with pytest.raises(CommandError, match="the run is PAUSED; it can be exported once"):
        call_command("export_model_run", str(run.pk), str(tmp_path / "no"), verbosity=0)
    assert list((tmp_path / "no").iterdir()) == []


def test_an_unknown_run_is_told(db, tmp_path):
    unknown = "8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11"
    with pytest.raises(CommandError, match=f"there is no model run {unknown}"):
        call_command("export_model_run", unknown, str(tmp_path), verbosity=0)


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None], *, listed: bool) -> Path:
    """The archive with `change` made to its files; `listed`: the manifest is made anew."""
    files = opened(path)
    change(files)
    if listed:
        manifest = json.loads(files["manifest.json"])
        manifest["files"] = {
            name: hashlib.sha256(data).hexdigest()
            for name, data in files.items()
            if name != "manifest.json"
        }
        files["manifest.json"] = json.dumps(manifest).encode()
    changed = path.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return changed


def in_json(name: str, change: Callable[[Any], None]) -> Callable[[dict[str, bytes]], None]:
    def edit(files: dict[str, bytes]) -> None:
        value = json.loads(files[name])
        change(value)
        files[name] = json.dumps(value).encode()

    return edit


def put(path: list[Any], value: Any) -> Callable[[Any], None]:
    def edit(whole: Any) -> None:
        for step in path[:-1]:
            whole = whole[step]
        whole[path[-1]] = value

    return edit


def drop_kernel(files: dict[str, bytes]) -> None:
    del files[next(name for name in files if name.endswith(".zip"))]


def drop_artifact(files: dict[str, bytes]) -> None:
    del files[next(name for name in files if name.startswith("artifacts/"))]


def swap_artifact(files: dict[str, bytes]) -> None:
    files[next(name for name in files if name.startswith("artifacts/"))] = b"other"


FIRST = "trajectories/01.json"


@pytest.mark.parametrize(
    ("change", "listed", "text"),
    [
        (in_json("run.json", put(["name"], "mine")), False, "run.json: expected SHA-256"),
        (in_json("run.json", put(["settings", "model"], "best")), True, "settings have digest"),
        (in_json("variants.json", put([0, "messages"], "[]")), True, "the prompts are not those"),
        (in_json(FIRST, put(["turns", 0, "answer"], "x")), True, "tell different things"),
        (in_json(FIRST, put(["turns", 0, "call", "finish_reason"], "x")), True, "breaks the chain"),
        (in_json(FIRST, put(["turns", 2, "outcome", "speedup"], 9.0)), True, "breaks the chain"),
        (in_json(FIRST, put(["turns", 0, "request", "body"], "x")), True, "not the one of its"),
        (in_json(FIRST, put(["turns", 0, "call"], None)), True, "parts are missing or odd"),
        (in_json(FIRST, lambda whole: whole["turns"][0].pop("call")), True, "odd: KeyError 'call'"),
        (in_json("manifest.json", put(["format"], "x")), False, "manifest.json has format 'x'"),
        (in_json(FIRST, lambda whole: whole["turns"].pop(1)), True, "it does not follow"),
        (in_json("problem.json", put(["title"], "x")), True, "not the problem that the settings"),
        (drop_kernel, True, "is not in the bundle"),
        (drop_artifact, True, "is neither here nor named as not kept"),
        (swap_artifact, True, "expected SHA-256"),
    ],
)  # fmt: skip
def test_a_changed_archive_is_refused_and_nothing_is_stored(
    exported, tmp_path, settings, change, listed, text
):
    changed = rewritten(exported, change, listed=listed)
    forget(settings, tmp_path)
    with pytest.raises(CommandError, match=text):
        call_command("load_model_run", str(changed), verbosity=0)
    assert ModelRun.objects.count() == Submission.objects.count() == Turn.objects.count() == 0


def test_it_is_refused_where_its_entrant_handed_in_the_same_kernel_before(
    exported, tmp_path, settings, problems
):
    passed = Submission.objects.get(evaluations__speedup__isnull=False)
    text, digest, slug = passed.candidate_json, passed.candidate_digest, passed.entrant.slug
    forget(settings, tmp_path)
    by = factories.entrant("coder-32b", slug=slug, kind="model")
    other = factories.submission(by=by, problem=problems["gemm_n7168_k5120"])
    Submission.objects.filter(pk=other.pk).update(candidate_json=text, candidate_digest=digest)
    with pytest.raises(CommandError, match="the same kernel here before under another identifier"):
        call_command("load_model_run", str(exported), verbosity=0)
    assert ModelRun.objects.count() == 0


def test_a_zip_bomb_and_a_wrong_file_are_refused(db, tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(b"not a zip")
    with pytest.raises(CommandError, match="not a readable archive"):
        call_command("load_model_run", str(path), verbosity=0)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", io.BytesIO(b"0" * (65 << 20)).getvalue())
    with pytest.raises(CommandError, match="at most 67108864 a file"):
        call_command("load_model_run", str(path), verbosity=0)
