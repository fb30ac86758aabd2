"""Archives made to harm: each is refused in words, nothing is written, nothing is loaded."""

import hashlib
import io
import json
import stat
import zipfile

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from leaderboard.models import Artifact, Submission
from leaderboard.models.artifact import artifact_path
from leaderboard.services import archive as archive_module
from tests.leaderboard.bodies import content_of, host_body

URL = "/api/v1/submissions/"


@pytest.fixture
def files(problems, alice_api, machine):
    """The files of an honest bundle; the site forgets the submission."""
    identifier = alice_api.post(URL, host_body(), format="json").json()["id"]
    machine.evaluate()
    data = content_of(alice_api.get(f"{URL}{identifier}/bundle/"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    Submission.objects.all().delete()
    return found


def listed(files):
    """The same files with a manifest that lists them, whatever they are called."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in files.items()
        if name != "manifest.json"
    }
    return {**files, "manifest.json": json.dumps(manifest).encode()}


def written(path, files, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        for info, data in entries:
            archive.writestr(info, data)
    return path


def refusal(path):
    with pytest.raises(CommandError) as caught:
        call_command("load_evaluations", str(path), verbosity=0)
    assert Submission.objects.count() == 0
    return str(caught.value)


def test_an_honest_bundle_packed_anew_is_taken(files, tmp_path):
    call_command("load_evaluations", str(written(tmp_path / "b.zip", listed(files))), verbosity=0)
    assert Submission.objects.get().verdict == "PASSED"


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/evil", "stages/../../evil", "..\\evil.txt", "artifacts/../x"]
)
def test_a_name_that_leads_out_is_refused(files, tmp_path, name):
    path = written(tmp_path / "b.zip", listed({**files, name: b"evil"}))
    assert "leads out of the bundle" in refusal(path)


@pytest.mark.parametrize(
    "name",
    [
        "artifacts/log_..",
        "artifacts/log_" + "A" * 64,
        "artifacts/sub/log_" + "a" * 64,
        "artifacts/log_" + "a" * 64,
        "artifacts/nothing",
    ],
)
def test_an_artifact_is_called_by_its_own_digest(files, tmp_path, private_var, name):
    path = written(tmp_path / "b.zip", listed({**files, name: b"evil"}))
    assert "does not end in the file's SHA-256" in refusal(path)
    assert Artifact.objects.count() == 0
    assert not (private_var / "artifacts").exists()


@pytest.mark.parametrize(
    "sha256", ["", "..", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "/"]
)
def test_nothing_but_a_digest_becomes_a_path(sha256):
    with pytest.raises(ValueError, match="is no SHA-256"):
        artifact_path(sha256)


def test_a_link_is_refused(files, tmp_path):
    link = zipfile.ZipInfo("candidate/link.cpp")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = written(tmp_path / "b.zip", listed(files), (link, "/etc/passwd"))
    assert "is no plain file" in refusal(path)


def test_a_folder_is_refused(files, tmp_path):
    path = written(tmp_path / "b.zip", listed(files), (zipfile.ZipInfo("candidate/more/"), b""))
    assert "is no plain file" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(files, tmp_path):
    path = written(tmp_path / "b.zip", listed(files), (zipfile.ZipInfo("record.json"), b"{}"))
    assert "'record.json' comes twice" in refusal(path)


def test_a_bomb_is_refused_before_it_is_unpacked(files, tmp_path, settings):
    settings.PTXBOARD_MAX_ARTIFACT_BYTES = 1 << 20
    zeros = b"\x00" * (2 << 20)
    name = f"artifacts/log_{hashlib.sha256(zeros).hexdigest()}"
    path = written(tmp_path / "b.zip", listed({**files, name: zeros}))
    assert path.stat().st_size < 100_000
    assert "holds 2097152 bytes unpacked, at most 1048576 a file" in refusal(path)


def test_a_bomb_of_many_parts_is_refused(files, tmp_path, monkeypatch):
    monkeypatch.setattr(archive_module, "MAX_TOTAL_BYTES", 10_000)
    assert "bytes unpacked, at most 10000" in refusal(written(tmp_path / "b.zip", listed(files)))


def test_too_many_files_are_refused(files, tmp_path, monkeypatch):
    monkeypatch.setattr(archive_module, "MAX_FILES", 5)
    path = written(tmp_path / "b.zip", listed(files))
    assert f"holds {len(files)} files, at most 5" in refusal(path)


def test_a_size_that_lies_is_refused(files, tmp_path):
    path = written(tmp_path / "b.zip", listed(files))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("record.json").file_size
    central = data.rindex(b"record.json") - 46
    data[central + 24 : central + 28] = (size // 2).to_bytes(4, "little")
    path.write_bytes(data)
    assert "not a readable archive" in refusal(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("submission.json", lambda said: said.pop("job")),
        ("submission.json", lambda said: said.update(id="no uuid")),
        ("submission.json", lambda said: said.update(entrant=None)),
        ("submission.json", lambda said: said.update(created_at="yesterday")),
        ("submission.json", lambda said: said["evaluation"].update(trust="believe me")),
        ("submission.json", lambda said: said["job"]["attempts"][0].update(state="GREAT")),
        ("submission.json", lambda said: said["job"].update(attempts=[])),
        ("problem.json", lambda said: said.pop("definition")),
        ("candidate.json", lambda said: said.update(sources=[])),
    ],
)
def test_odd_parts_are_named_and_nothing_is_half_loaded(files, tmp_path, name, change):
    said = json.loads(files[name])
    change(said)
    path = written(tmp_path / "b.zip", listed({**files, name: json.dumps(said).encode()}))
    assert refusal(path).startswith(f"{path}: ")


@pytest.mark.parametrize("name", ["manifest.json", "submission.json", "candidate.json"])
def test_a_missing_part_is_named(files, tmp_path, name):
    rest = {one: data for one, data in files.items() if one != name}
    path = written(tmp_path / "b.zip", rest if name == "manifest.json" else listed(rest))
    assert name in refusal(path)
