"""A submission's archive: it verifies without the site, moves to another site, and is refused
when a byte of it was changed."""

import hashlib
import io
import json
import zipfile

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluator.bundle import verify_bundle
from leaderboard.models import AuditEntry, Evaluation, StageRecord, Submission
from tests.leaderboard.bodies import content_of, host_body, problem_of

URL = "/api/v1/submissions/"
LIBRARY = b"\x7fELF library"


@pytest.fixture
def evaluated(problems, alice_api, machine):
    """A host kernel that passed, with one artifact."""
    identifier = alice_api.post(URL, host_body(), format="json").json()["id"]
    build = machine.order()
    machine.put(build, LIBRARY)
    results = machine.results(build)
    wanted = {
        "role": "library",
        "sha256": hashlib.sha256(LIBRARY).hexdigest(),
        "byte_count": len(LIBRARY),
    }
    values = [result.model_dump(mode="json") for result in results]
    values[1]["artifacts"] = [wanted]
    for value in values:
        assert machine.stage(build, value).status_code == 200
    machine.complete(build)
    machine.run(machine.order(), speedup=1.25)
    return identifier


def opened(api, identifier):
    data = content_of(api.get(f"{URL}{identifier}/bundle/"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_it_holds_everything_and_verifies_by_its_own_readme(evaluated, visitor_api):
    files = opened(visitor_api, evaluated)
    assert sorted(files) == sorted(
        [
            "README.txt",
            f"artifacts/library_{hashlib.sha256(LIBRARY).hexdigest()}",
            "candidate.json",
            "candidate/kernel.cpp",
            "manifest.json",
            "problem.json",
            "record.json",
            "stages/01_policy.json",
            "stages/02_compilation.json",
            "stages/03_correctness.json",
            "stages/04_timing.json",
            "submission.json",
        ]
    )
    manifest = json.loads(files["manifest.json"])
    assert manifest["format"] == "ptxboard.bundle/1"
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    for path, digest in manifest["files"].items():
        assert hashlib.sha256(files[path]).hexdigest() == digest
    previous = hashlib.sha256(files["candidate.json"]).hexdigest()
    for name in sorted(name for name in files if name.startswith("stages/")):
        stage = json.loads(files[name])
        body = canonical({"previous": previous, "record": stage["record"]})
        assert stage["previous"] == previous
        assert stage["digest"] == hashlib.sha256(body).hexdigest()
        previous = stage["digest"]
    assert json.loads(files["record.json"])["verdict"] == "PASSED"


def test_it_downloads_as_a_zip_under_a_name_of_ours(evaluated, visitor_api):
    answer = visitor_api.get(f"{URL}{evaluated}/bundle/")
    assert content_of(answer).startswith(b"PK")
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"] == f'attachment; filename="ptxboard_{evaluated}.zip"'


def test_two_downloads_are_the_same_bytes(evaluated, visitor_api):
    first, second = (content_of(visitor_api.get(f"{URL}{evaluated}/bundle/")) for _ in range(2))
    assert first == second


def test_a_waiting_submission_has_a_bundle_too(problems, alice_api):
    identifier = alice_api.post(URL, host_body(), format="json").json()["id"]
    files = opened(alice_api, identifier)
    assert "record.json" not in files
    assert json.loads(files["submission.json"])["state"] == "QUEUED"
    problem_of(alice_api.get(f"{URL}8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11/bundle/"), 404)


def forget():
    """Another site: the same catalogue, nothing handed in."""
    Evaluation.objects.all().delete()
    Submission.objects.all().delete()


def test_what_one_site_exports_another_loads_as_it_was(evaluated, visitor_api, tmp_path, settings):
    before = visitor_api.get(f"{URL}{evaluated}/").json()
    board = visitor_api.get("/api/v1/boards/host/gemm_n256_k256/").json()
    call_command("export_evaluations", str(tmp_path / "out"), verbosity=0)
    (path,) = (tmp_path / "out").glob("*.zip")
    assert path.name == f"plain-loops_{evaluated[:8]}.zip"
    forget()
    settings.PTXBOARD_ARTIFACTS = tmp_path / "elsewhere"
    for _ in range(2):
        call_command("load_evaluations", str(path), verbosity=0)
    after = visitor_api.get(f"{URL}{evaluated}/").json()
    assert after == before
    assert visitor_api.get("/api/v1/boards/host/gemm_n256_k256/").json() == board
    digest = hashlib.sha256(LIBRARY).hexdigest()
    assert content_of(visitor_api.get(f"/api/v1/artifacts/{digest}/")) == LIBRARY
    assert AuditEntry.objects.filter(action="imported", subject=evaluated).count() == 1
    assert all(record.digest == record.computed_digest for record in StageRecord.objects.all())


RECORDED = sorted((settings.BASE_DIR / "examples" / "recorded").glob("*.zip"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_bundle_of_an_older_site_goes_out_as_it_came_in(problems, path, tmp_path):
    """Its stages lack the fields that records have gained since; the copy must verify as well."""
    call_command("load_evaluations", str(path), verbosity=0)
    call_command("export_evaluations", str(tmp_path / "first"), verbosity=0)
    forget()
    (first,) = (tmp_path / "first").glob("*.zip")
    call_command("load_evaluations", str(first), verbosity=0)
    call_command("export_evaluations", str(tmp_path / "second"), verbosity=0)
    (second,) = (tmp_path / "second").glob("*.zip")
    assert second.read_bytes() == first.read_bytes()
    assert verify_bundle(first).faults == ()


def changed(path, name, change, *, fix_manifest):
    with zipfile.ZipFile(path) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    files[name] = change(files[name])
    if fix_manifest:
        manifest = json.loads(files["manifest.json"])
        manifest["files"][name] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for one, data in files.items():
            archive.writestr(one, data)


@pytest.mark.parametrize(
    ("name", "old", "new", "fix_manifest", "part"),
    [
        ("candidate/kernel.cpp", b"void run", b"void ran", False, "expected SHA-256"),
        ("stages/04_timing.json", b'"speedup":1.25', b'"speedup":9.25', True, "breaks the chain"),
        ("candidate.json", b"void run", b"void ran", True, "breaks the chain"),
        ("record.json", b'"speedup":1.25', b'"speedup":9.25', True, "tell different results"),
        ("manifest.json", b"bundle/1", b"bundle/9", False, "expected 'ptxboard.bundle/1'"),
        ("submission.json", b'"verdict": "PASSED"', b'"verdict": "TIMEOUT"', True, "stages give"),
    ],
)
def test_a_changed_byte_is_refused_and_nothing_is_loaded(
    evaluated, tmp_path, name, old, new, fix_manifest, part
):
    call_command("export_evaluations", str(tmp_path), verbosity=0)
    (path,) = tmp_path.glob("*.zip")

    def change(data):
        assert old in data
        return data.replace(old, new)

    changed(path, name, change, fix_manifest=fix_manifest)
    forget()
    with pytest.raises(CommandError, match=part):
        call_command("load_evaluations", str(path), verbosity=0)
    assert Submission.objects.count() == 0


def test_what_is_no_bundle_is_named(problems, tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(b"not a zip")
    with pytest.raises(CommandError, match="not a readable archive"):
        call_command("load_evaluations", str(path), verbosity=0)
    with pytest.raises(CommandError, match="no such file"):
        call_command("load_evaluations", str(tmp_path / "none.zip"), verbosity=0)


def test_an_export_of_nothing_says_so(problems, tmp_path):
    with pytest.raises(CommandError, match="no evaluated submission"):
        call_command("export_evaluations", str(tmp_path / "out"), verbosity=0)
