"""Reading a zip that strangers may have written: nothing goes to disk, and sizes are bounded.

Refused: names that lead out of a folder or come twice, links and whatever else is no file, more or
larger files than a bundle ever holds. Sizes are checked as declared, and zipfile reads no more than
is declared. Not covered: who wrote it; a bundle carries digests, no signature.
"""

import io
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from django.conf import settings

MAX_FILES = 2000
MAX_TOTAL_BYTES = 512 << 20


class BrokenBundle(ValueError):
    """A bundle that does not verify; the message names the file, what was seen and expected."""


def archive_files(path: Path, *, most: int | None = None) -> dict[str, bytes]:
    """Every file of the archive by name, at most `most` or MAX_FILES. Raises BrokenBundle."""
    return _files(path.name, path, most or MAX_FILES)


def inner_files(name: str, data: bytes) -> dict[str, bytes]:
    """Every file of an archive that lies in another. Raises BrokenBundle."""
    return _files(name, io.BytesIO(data), MAX_FILES)


def _files(name: str, source: Path | io.BytesIO, most: int) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            _check_entries(name, entries, most)
            return {entry.filename: archive.read(entry) for entry in entries}
    except (OSError, zipfile.BadZipFile, RuntimeError, EOFError, zlib.error) as error:
        raise BrokenBundle(f"{name}: not a readable archive: {error}") from error


def _check_entries(name: str, entries: list[zipfile.ZipInfo], most: int) -> None:
    if len(entries) > most:
        raise BrokenBundle(f"{name}: holds {len(entries)} files, at most {most}")
    seen: set[str] = set()
    for entry in entries:
        if problem := _problem_of(entry, seen):
            raise BrokenBundle(f"{name}: {entry.filename[:200]!r} {problem}")
        seen.add(entry.filename)
    total = sum(entry.file_size for entry in entries)
    if total > MAX_TOTAL_BYTES:
        raise BrokenBundle(f"{name}: holds {total} bytes unpacked, at most {MAX_TOTAL_BYTES}")


def _problem_of(entry: zipfile.ZipInfo, seen: set[str]) -> str:
    """What is wrong with an entry; empty where it is a plain file inside the bundle."""
    path, limit = PurePosixPath(entry.filename), settings.PTXBOARD_MAX_ARTIFACT_BYTES
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or "\\" in entry.filename or not path.parts:
        return "leads out of the bundle; names are relative, with / between folders"
    if entry.is_dir() or kind not in (0, stat.S_IFREG):
        return "is no plain file; a bundle holds nothing else"
    if entry.filename in seen:
        return "comes twice; each name may come once"
    if entry.file_size > limit:
        return f"holds {entry.file_size} bytes unpacked, at most {limit} a file"
    return ""
