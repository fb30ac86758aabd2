"""Taking a dump in: all of it in one transaction, or nothing.

Digests and chains are checked as for single archives. Into an empty site the boards must come out
as the dump tells them; into any other they grow by what was not there yet.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluator.records.base import strict_loads
from evaluator.records.problem import Problem as ProblemRecord
from evaluator.records.trace_set import read_trace_set
from evaluator.targets import TARGETS
from leaderboard.models import Entrant, ModelRun, ModelStanding, Problem, Submission
from leaderboard.services.archive import BrokenBundle
from leaderboard.services.bundle_reading import bundle_load, bundle_read
from leaderboard.services.catalogue import problem_row
from leaderboard.services.dumps import FORMAT, OURS, digest_of_file, files_of, standings_told
from leaderboard.services.run_bundle_reading import run_bundle_load, run_bundle_read
from leaderboard.services.standings_update import PUBLISHED

CELL = (
    "problem_name",
    "measured_digest",
    "target",
    "language",
    "level",
    "scoring_version",
    "trust",
)


@dataclass(slots=True, kw_only=True)
class Loaded:
    """How many came in, and how many were here already."""

    problems: int = 0
    runs: int = 0
    submissions: int = 0
    published: int = 0
    known: int = 0
    boards_compared: bool = field(default=False)


@transaction.atomic
def dump_load(folder: Path) -> Loaded:
    """Raises BrokenBundle, which says what was seen and expected; InvalidRecord; OSError."""
    check_manifest(folder)
    read_trace_set(folder)
    was_empty = not (ModelRun.objects.exists() or Submission.objects.exists())
    was_empty = was_empty and not ModelStanding.objects.exists()
    done = Loaded(problems=_problems(folder))
    for path in sorted((folder / OURS / "submissions").glob("*.zip")):
        if bundle_load(bundle_read(path)) is None:
            done.known += 1
        else:
            done.submissions += 1
    for path in sorted((folder / OURS / "runs").glob("*.zip")):
        if run_bundle_load(run_bundle_read(path)) is None:
            done.known += 1
        else:
            done.runs += 1
    done.published = _published(folder)
    if was_empty:
        _compare(folder)
        done.boards_compared = True
    return done


def check_manifest(folder: Path) -> dict[str, Any]:
    """Every file listed is there with its digest, and nothing else is. Raises BrokenBundle."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise BrokenBundle(f"{folder}: no manifest.json; it is no dump, or one that was not ended")
    manifest = strict_loads(path.read_bytes())
    seen = manifest.get("format") if isinstance(manifest, dict) else None
    if seen != FORMAT:
        raise BrokenBundle(f"{path}: format {seen!r}, expected {FORMAT!r}")
    listed, here = manifest["files"], files_of(folder)
    if extra := sorted(set(here) - set(listed)):
        raise BrokenBundle(f"{folder}: {extra[0]} is not in the manifest")
    for name, expected in listed.items():
        found = digest_of_file(folder / name) if name in set(here) else "no file"
        if found != expected:
            raise BrokenBundle(f"{folder}: {name}: expected SHA-256 {expected}, found {found}")
    return dict(manifest)


def _problems(folder: Path) -> int:
    """Versions that are new here; one is current unless the site has a current one of that name."""
    count = 0
    for path in sorted((folder / OURS / "problems").glob("*.json")):
        told = strict_loads(path.read_bytes())
        record = ProblemRecord.model_validate(told["record"])
        taken = Problem.objects.current().filter(name=record.name).exists()
        current = bool(told["current"]) and not taken
        _, made = problem_row(record, position=told["position"], current=current)
        count += made
    return count


def _published(folder: Path) -> int:
    count = 0
    for told in strict_loads((folder / OURS / "published.json").read_bytes()):
        if told["trust"] != PUBLISHED or told["target"] not in TARGETS:
            raise BrokenBundle(f"published.json: {told['trust']} on {told['target']}: no such row")
        who = told.pop("entrant")
        entrant, _ = Entrant.objects.get_or_create(
            slug=who["slug"],
            defaults={"display_name": who["display_name"], "kind": Entrant.Kind(who["kind"])},
        )
        cell = {name: told.pop(name) for name in CELL}
        del told["newest_run"]
        told["updated_at"] = timezone.now()
        _, made = ModelStanding.objects.get_or_create(entrant=entrant, **cell, defaults=told)
        count += made
    return count


def _compare(folder: Path) -> None:
    told = strict_loads((folder / OURS / "standings.json").read_bytes())
    told = [row for row in told if row["is_final"]]
    here = {_cell(row): row for row in standings_told()}
    for row in told:
        seen = here.get(_cell(row))
        if seen is None:
            raise BrokenBundle(f"{_words(row)}: the dump has a standing, its turns give none")
        if different := [name for name in row if row[name] != seen[name]]:
            name = different[0]
            raise BrokenBundle(
                f"{_words(row)}: {name} is {row[name]!r} in the dump, its turns give {seen[name]!r}"
            )


def _cell(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["entrant"]["slug"], *(row[name] for name in CELL))


def _words(row: dict[str, Any]) -> str:
    return f"{row['entrant']['slug']} on {row['problem_name']}, {row['target']}"
