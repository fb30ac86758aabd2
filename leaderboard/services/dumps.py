"""Everything public as one folder: a FlashInfer trace set, and beside it all that it cannot hold.

Layout  manifest.json              {format, scoring_version, files: {path: sha256}, left_out}
        README.md                  how to read and verify it without this site
        definitions/ workloads/ solutions/ traces/    as FlashInfer-Trace has them
        ptxboard/problems/<name>_<digest>.json        {record, current, position}
        ptxboard/submissions/<id>.zip                 bundles of kernels that no run of a model made
        ptxboard/runs/<id>.zip                        bundles of model runs that have ended
        ptxboard/published.json                       figures of papers
        ptxboard/standings.json                       boards of models, to compare with later
Left out: runs that go on, kernels without a valid evaluation, keys, accounts, built libraries.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from django.db.models import QuerySet

from evaluator import SCORING_VERSION
from evaluator.records.base import sha256_hex
from evaluator.records.export import evaluation_to_trace
from evaluator.records.flashinfer import Solution, Trace
from evaluator.records.solutions import candidate_to_solution
from evaluator.records.trace_set import TraceSet, write_trace_set
from leaderboard.models import ModelRun, ModelStanding, Problem, Submission
from leaderboard.services.bundle import bundle_write, pretty
from leaderboard.services.run_bundle import run_bundle_write
from leaderboard.services.standings_update import PUBLISHED, standing_values

FORMAT = "ptxboard.dump/1"
OURS = "ptxboard"
README = """# A dump of PTXBoard

`definitions/`, `workloads/`, `solutions/` and `traces/` are a FlashInfer trace set. `ptxboard/`
holds what that layout has no place for: each kernel's and each model run's own archive, with every
piece of evidence and a chain of digests, and a README of its own that tells how to verify it.

`manifest.json` lists the SHA-256 of every other file. `manage.py load FOLDER` checks all of it,
takes it in and compares the boards with `ptxboard/standings.json`.
"""


class FolderTaken(ValueError):
    """The folder is no place for a dump; says why."""


def dump_write(folder: Path) -> dict[str, int]:
    """The whole dump into an empty or new folder; how many of what.

    The manifest comes last: a folder without one is no dump. Raises FolderTaken, OSError.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderTaken(f"{folder} is there and not empty; name a folder that is new")
    folder.mkdir(parents=True, exist_ok=True)
    runs = ModelRun.objects.select_related("entrant", "problem").order_by("created_at", "pk")
    ended = [run for run in runs if not run.is_open]
    kernels = submissions_alone(ended)
    counts = {
        "problems": _problems(folder),
        "runs": _runs(folder, ended),
        "submissions": _submissions(folder, kernels),
        **_trace_set(folder),
        "standings": _standings(folder),
    }
    (folder / "README.md").write_text(README, encoding="utf-8")
    left_out = {str(run.pk): f"the run is {run.state}" for run in runs if run.is_open}
    manifest = {
        "format": FORMAT,
        "scoring_version": SCORING_VERSION,
        "files": {path: digest_of_file(folder / path) for path in files_of(folder)},
        "left_out": left_out,
    }
    (folder / "manifest.json").write_bytes(pretty(manifest))
    return counts


def files_of(folder: Path) -> list[str]:
    """Every file but the manifest, by its path inside the folder."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if path != "manifest.json")


def digest_of_file(path: Path) -> str:
    return sha256_hex(path.read_bytes())


def _put(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")


def _problems(folder: Path) -> int:
    rows = list(Problem.objects.order_by("position", "pk"))
    for row in rows:
        value = {
            "record": row.record.model_dump(mode="json"),
            "current": row.current,
            "position": row.position,
        }
        with _put(folder / OURS / "problems" / f"{row.name}_{row.digest[:12]}.json") as out:
            out.write(pretty(value))
    return len(rows)


def _runs(folder: Path, runs: list[ModelRun]) -> int:
    for run in runs:
        with _put(folder / OURS / "runs" / f"{run.pk}.zip") as out:
            run_bundle_write(run=run, out=out)
    return len(runs)


def submissions_alone(runs: list[ModelRun]) -> QuerySet[Submission]:
    """Evaluated kernels that no archive of these runs holds already."""
    rows = Submission.objects.filter(evaluations__valid=True)
    rows = rows.exclude(turns__trajectory__run__in=runs).distinct()
    return rows.select_related("entrant", "problem").order_by("created_at", "pk")


def _submissions(folder: Path, rows: QuerySet[Submission]) -> int:
    count = 0
    for row in rows.iterator():
        with _put(folder / OURS / "submissions" / f"{row.pk}.zip") as out:
            bundle_write(submission=row, out=out)
        count += 1
    return count


def _trace_set(folder: Path) -> dict[str, int]:
    """Of problems as they are now; kernels that FlashInfer's schema cannot tell stay in ours."""
    problems = {row.pk: row for row in Problem.objects.current()}
    solutions, traces = {}, []
    for submission in _evaluated(problems):
        try:
            solution, trace = _told(submission)
        except ValueError:
            continue
        solutions[solution.name] = solution
        traces.append(trace)
    records = [row.record for row in problems.values()]
    write_trace_set(
        TraceSet(
            definitions={one.definition.name: one.definition for one in records},
            workloads=tuple(
                Trace(definition=one.definition.name, workload=one.workload) for one in records
            ),
            solutions=solutions,
            traces=tuple(traces),
        ),
        folder,
    )
    return {"solutions": len(solutions), "traces": len(traces)}


def _evaluated(problems: dict[Any, Problem]) -> Iterator[Submission]:
    rows = Submission.objects.filter(evaluations__valid=True, problem__in=list(problems))
    rows = rows.select_related("entrant", "problem").order_by("created_at", "pk")
    yield from rows.distinct().iterator()


def _told(submission: Submission) -> tuple[Solution, Trace]:
    """Raises ValueError where FlashInfer has no word for it.

    The author is the entrant's slug: it names a folder, which a display name cannot always.
    """
    evaluation = submission.evaluation
    assert evaluation is not None, "only evaluated kernels are told"
    name = f"{submission.problem.name}_{submission.target}_{str(submission.pk)[:13]}"
    solution = candidate_to_solution(
        submission.candidate, name=name, author=submission.entrant.slug
    )
    trace = evaluation_to_trace(evaluation.record, submission.problem.record, solution=name)
    return solution, trace


def _standings(folder: Path) -> int:
    rows = standings_told()
    published = [row for row in rows if row["trust"] == PUBLISHED]
    for name, told in (("standings", rows), ("published", published)):
        with _put(folder / OURS / f"{name}.json") as out:
            out.write(pretty(told))
    return len(rows)


def standings_told() -> list[dict[str, Any]]:
    """Every standing by names instead of row numbers, in an order of its own."""
    rows = ModelStanding.objects.select_related("entrant")
    return sorted((_standing(row) for row in rows.iterator()), key=str)


def _standing(row: ModelStanding) -> dict[str, Any]:
    told = standing_values(row)
    del told["entrant_id"]
    run = told.pop("newest_run_id")
    who = row.entrant
    return {
        **told,
        "newest_run": str(run) if run else None,
        "entrant": {"slug": who.slug, "display_name": who.display_name, "kind": who.kind},
    }
