"""Finished builds on disk, by the digest of everything that can change them.

`<key>.json` holds the stage result, `objects/<sha256>` the artifacts. Files appear whole, by
rename, so that workers may share the folder. What fails its digest counts as not cached.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaluator.records.base import InvalidJson, sha256_hex, strict_loads
from evaluator.records.evaluation import AnyStageResult, stage_result_from_json
from evaluator.work import Work

MOST_BUILDS = 2000
MOST_BYTES = 8 << 30


def load(folder: Path, key: str, work: Work) -> AnyStageResult | None:
    """A finished build, its artifacts copied to the work's folder; None where there is none."""
    entry = folder / f"{key}.json"
    try:
        result = stage_result_from_json(strict_loads(entry.read_bytes()))
        contents = [
            (artifact, (folder / "objects" / artifact.sha256).read_bytes())
            for artifact in result.artifacts
        ]
    except (OSError, InvalidJson, ValueError):
        return None
    if any(sha256_hex(data) != artifact.sha256 for artifact, data in contents):
        return None
    for artifact, data in contents:
        work.store(artifact.role, data)
    os.utime(entry)
    return result


def save(folder: Path, key: str, result: AnyStageResult, work: Work) -> None:
    """Objects first: an entry never names a file that is not there."""
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    for artifact in result.artifacts:
        _put(folder / "objects" / artifact.sha256, work.path(artifact).read_bytes())
    _put(folder / f"{key}.json", result.to_json().encode())
    _forget_oldest(folder)


def _put(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.replace(name, path)


def _forget_oldest(folder: Path) -> None:
    """Keep the folder within its limits; whoever reads a removed object takes it as not cached."""
    for pattern in ("*.json", "objects/*"):
        kept_bytes = 0
        for number, (path, status) in enumerate(_newest_first(folder, pattern)):
            kept_bytes += status.st_size
            if number >= MOST_BUILDS or kept_bytes > MOST_BYTES:
                path.unlink(missing_ok=True)


def _newest_first(folder: Path, pattern: str) -> Iterator[tuple[Path, os.stat_result]]:
    found = []
    for path in folder.glob(pattern):
        try:
            found.append((path, path.stat()))
        except FileNotFoundError:
            continue
    yield from sorted(found, key=lambda pair: -pair[1].st_mtime)
