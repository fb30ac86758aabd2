"""A bundle checked offline: every file against the manifest, and the chain of stage records.

`manifest.json` holds `files`: {path: sha256}. `stages/NN_<stage>.json` hold {previous, digest,
record}: a digest covers the record and the digest before it, and the first stands on the SHA-256
of `candidate.json`. Reading is bounded, so a hostile archive cannot fill the memory.

What gets past: an archive whose manifest and chain were both made anew. The last digest of the
chain is told so that it can be compared with the submission's page.
"""

import hashlib
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.records.base import InvalidJson, digest_of, strict_loads

MANIFEST = "manifest.json"
MANIFEST_BYTES = 16 << 20
RECORD_BYTES = 64 << 20
MOST_BYTES = 4 << 30
CANDIDATE = "candidate.json"
STAGE = re.compile(r"stages/(\d+)_\w+\.json")
ARTIFACT = re.compile(r"artifacts/[\w-]+_([0-9a-f]{64})")
CHUNK_BYTES = 1 << 20


class NotABundle(ValueError):
    """The file is no zip archive, or has no usable manifest; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """`faults` are sentences; none means that every byte is as the manifest and the chain say."""

    file_count: int
    byte_count: int
    stage_count: int
    chain_digest: str | None
    faults: tuple[str, ...]


def verify_bundle(path: Path) -> BundleReport:
    """Raises NotABundle where there is nothing to check against."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _verify(archive)
    except (OSError, zipfile.BadZipFile) as error:
        raise NotABundle(f"{path.name}: not a readable zip archive: {error}") from error


def _verify(archive: zipfile.ZipFile) -> BundleReport:
    files = manifest_files(_manifest(archive))
    names = [name for name in archive.namelist() if not name.endswith("/")]
    faults = [f"{name}: occurs twice in the archive" for name in _repeated(names)]
    faults += [
        f"{name}: in the manifest, not in the archive" for name in files if name not in names
    ]
    extra = sorted(set(names) - set(files) - {MANIFEST})
    faults += [f"{name}: in the archive, not in the manifest" for name in extra]
    total = sum(info.file_size for info in archive.infolist())
    if total > MOST_BYTES:
        raise NotABundle(f"the archive unpacks to {total} bytes, at most {MOST_BYTES} are read")
    seen = {name: _digest(archive, name) for name in files if name in names}
    faults += [
        f"{name}: SHA-256 {digest}, the manifest says {files[name]}"
        for name, digest in seen.items()
        if digest != files[name]
    ]
    faults += _misnamed_artifacts(seen)
    stages = sorted((name for name in seen if STAGE.fullmatch(name)), key=_stage_number)
    chain_digest, broken = _follow(archive, stages, seen.get(CANDIDATE))
    return BundleReport(
        file_count=len(files),
        byte_count=total,
        stage_count=len(stages),
        chain_digest=chain_digest,
        faults=(*faults, *broken),
    )


def _stage_number(name: str) -> int:
    match = STAGE.fullmatch(name)
    return int(match.group(1)) if match else 0


def _misnamed_artifacts(seen: dict[str, str]) -> list[str]:
    matches = ((name, ARTIFACT.fullmatch(name)) for name in seen)
    return [
        f"{name}: its bytes have SHA-256 {seen[name]}"
        for name, match in matches
        if match and match.group(1) != seen[name]
    ]


def _follow(
    archive: zipfile.ZipFile, stages: list[str], start: str | None
) -> tuple[str | None, list[str]]:
    """The last digest of the chain, and where it breaks."""
    if stages and start is None:
        return None, [f"{CANDIDATE}: missing, and the chain of stages starts with its SHA-256"]
    faults: list[str] = []
    previous = start
    for name in stages:
        entry = _stage_entry(archive, name)
        if entry is None:
            return previous, [*faults, f"{name}: expected previous, digest and record"]
        if entry["previous"] != previous:
            faults.append(f"{name}: follows {entry['previous']}, the one before is {previous}")
        expected = digest_of({"previous": entry["previous"], "record": entry["record"]})
        if entry["digest"] != expected:
            faults.append(f"{name}: says digest {entry['digest']}, its record gives {expected}")
        previous = str(entry["digest"])
    return (previous if stages else None), faults


def _stage_entry(archive: zipfile.ZipFile, name: str) -> dict[str, Any] | None:
    if archive.getinfo(name).file_size > RECORD_BYTES:
        return None
    try:
        entry = strict_loads(archive.read(name))
    except (InvalidJson, zipfile.BadZipFile, OSError):
        return None
    usable = isinstance(entry, dict) and {"previous", "digest", "record"} <= entry.keys()
    return entry if usable else None


def _manifest(archive: zipfile.ZipFile) -> Any:
    try:
        size = archive.getinfo(MANIFEST).file_size
    except KeyError:
        raise NotABundle(f"no {MANIFEST} in the archive") from None
    if size > MANIFEST_BYTES:
        raise NotABundle(f"{MANIFEST} has {size} bytes, at most {MANIFEST_BYTES}")
    try:
        return strict_loads(archive.read(MANIFEST))
    except InvalidJson as error:
        raise NotABundle(f"{MANIFEST}: {error}") from error


def manifest_files(manifest: Any) -> dict[str, str]:
    """Path to SHA-256. Raises NotABundle if the manifest has another shape."""
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not all(isinstance(v, str) for v in files.values()):
        raise NotABundle(f"{MANIFEST}: expected 'files' to map each path to its SHA-256")
    return files


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _digest(archive: zipfile.ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    try:
        with archive.open(name) as file:
            while data := file.read(CHUNK_BYTES):
                digest.update(data)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        return f"unreadable ({error})"
    return digest.hexdigest()
