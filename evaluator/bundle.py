"""A bundle checked offline: every file against the manifest's SHA-256, nothing missing or added.

`manifest.json` holds `files`: {path: sha256}. Reading is bounded, so a hostile archive cannot
fill the memory.
"""

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.records.base import InvalidJson, strict_loads

MANIFEST = "manifest.json"
MANIFEST_BYTES = 16 << 20
MOST_BYTES = 4 << 30
CHUNK_BYTES = 1 << 20


class NotABundle(ValueError):
    """The file is no zip archive, or has no usable manifest; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """`faults` are sentences; none means that every byte is as the manifest says."""

    file_count: int
    byte_count: int
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
    for name, expected in files.items():
        if name in names:
            seen = _digest(archive, name)
            if seen != expected:
                faults.append(f"{name}: SHA-256 {seen}, the manifest says {expected}")
    return BundleReport(file_count=len(files), byte_count=total, faults=tuple(faults))


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
