"""A model run as one archive that stands alone: settings, prompts, turns and every kernel.

Layout  manifest.json            {format, run, files: {path: sha256}, not_kept: {sha256: role}}
        README.txt               how to verify it without this site
        run.json                 settings (what chains begin with), names, times; no key, no path
        problem.json             the problem record as the run asked it
        variants.json            each variant with its base prompt to the letter
        trajectories/NN.json     a trajectory with its turns, requests and replies
        submissions/<id>.zip     a submission's own bundle without its artifacts
        submissions/<id>.json    in its place where it has no valid evaluation
        artifacts/<sha256>       each once, whichever kernels it belongs to
"""

import io
import zipfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Any

from evaluator.records.base import strict_loads
from leaderboard.models import ModelRun, StageArtifact, Submission, Trajectory
from leaderboard.refusals import RunState
from leaderboard.services.bundle import (
    BundleFile,
    add_file,
    bundle_write,
    entrant_summary,
    pretty,
)
from leaderboard.services.model_runs.exports import turn_record, turns_of

FORMAT = "ptxboard.run-bundle/1"
LIBRARY = "library"
RUN_COLUMNS = (
    "name",
    "max_parallel",
    "limit_turns",
    "limit_tokens",
    "limit_cost_usd",
    "limit_seconds",
    "price_prompt_usd",
    "price_completion_usd",
    "state",
    "reason",
    "held_seconds",
)
RUN_TIMES = ("created_at", "started_at", "ended_at")
README = """This archive holds one run of a model on PTXBoard: every prompt, answer and kernel.

To verify it without the site:
1. manifest.json lists the SHA-256 of every other file: compare each with sha256sum. The artifacts
   under its "not_kept" were left out; their digests stand in the records that name them.
2. The chain of a trajectory: for each turn, SHA-256 of the text {"previous":<previous_digest>,
   "record":<call>} as canonical JSON (keys sorted, no spaces, UTF-8 kept as it is) must equal its
   "call_digest", and that of {"previous":<call_digest>,"record":<outcome>} its "digest", which is
   the "previous_digest" of the next turn. The first "previous_digest" is the SHA-256 of the
   canonical JSON of "settings" in run.json.
3. submissions/<id>.zip: a bundle with its own README.txt. The artifacts that it names as
   artifacts/<role>_<sha256> lie in this archive's artifacts/<sha256>.

PTXBoard's own `manage.py load_model_run FILE` checks all of this before it takes anything in.
"""


def run_bundle_write(*, run: ModelRun, out: IO[bytes], libraries: bool = False) -> None:
    """Write the archive; equal runs give equal bytes. Built libraries only where asked for.

    Raises RunState for a run that has not ended.
    """
    if run.is_open:
        raise RunState(f"the run is {run.state}; it can be exported once it has ended")
    submissions = _submissions(run)
    kept, not_kept = _artifacts(submissions, libraries=libraries)
    files = [*_files(run, submissions), *kept]
    manifest = {
        "format": FORMAT,
        "run": str(run.pk),
        "files": {file.path: file.digest for file in files},
        "not_kept": not_kept,
    }
    made = run.created_at.timetuple()[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in [BundleFile(path="manifest.json", data=pretty(manifest)), *files]:
            add_file(archive, made, file)


def _submissions(run: ModelRun) -> list[Submission]:
    rows = Submission.objects.filter(turns__trajectory__run=run).distinct()
    return list(rows.select_related("entrant", "problem").order_by("created_at", "id"))


def _artifacts(
    submissions: Iterable[Submission], *, libraries: bool
) -> tuple[list[BundleFile], dict[str, str]]:
    """What is kept, each once, and {digest: role} of what is left out or gone already."""
    evaluated = [one.evaluation.job_id for one in submissions if one.evaluation]
    uses = StageArtifact.objects.filter(stage_record__attempt__job__in=evaluated)
    kept, not_kept = {}, {}
    for use in uses.select_related("artifact").order_by("artifact_id"):
        if (use.role == LIBRARY and not libraries) or not use.artifact.path.exists():
            not_kept[use.artifact_id] = use.role
        else:
            kept[use.artifact_id] = use.artifact.path
    files = [
        BundleFile(path=f"artifacts/{sha256}", source=path, sha256=sha256)
        for sha256, path in kept.items()
    ]
    return files, {sha256: role for sha256, role in not_kept.items() if sha256 not in kept}


def _files(run: ModelRun, submissions: Iterable[Submission]) -> Iterator[BundleFile]:
    yield BundleFile(path="README.txt", data=README.encode())
    yield BundleFile(path="run.json", data=pretty(_run(run)))
    yield BundleFile(path="problem.json", data=run.problem.record_json.encode())
    yield BundleFile(path="variants.json", data=pretty(_variants(run)))
    rows = run.trajectories.select_related("variant").in_order()
    for number, trajectory in enumerate(rows, 1):
        # bzip2 finds the prompt again that each request repeats, which deflate's window is too
        # short for: a run of 96 turns shrinks by a factor of ten
        yield BundleFile(
            path=f"trajectories/{number:02d}.json",
            data=pretty(_trajectory(trajectory)),
            packing=zipfile.ZIP_BZIP2,
        )
    for submission in submissions:
        yield _submission(submission)


def _run(run: ModelRun) -> dict[str, Any]:
    return {
        "settings": run.settings_record,
        "digest": run.digest,
        "batch": str(run.batch),
        "endpoint_host": run.endpoint_host,
        "scoring_version": run.scoring_version,
        "unranked_reason": run.unranked_reason,
        "report_digest": run.body_digest if run.trust == run.Trust.SELF_REPORTED else "",
        "entrant": entrant_summary(run.entrant),
        **{name: getattr(run, name) for name in RUN_COLUMNS},
        **{name: moment(getattr(run, name)) for name in RUN_TIMES},
    }


def _variants(run: ModelRun) -> list[dict[str, Any]]:
    return [
        {
            "slug": one.slug,
            "title": one.title,
            "schedules": one.schedules,
            "digest": one.digest,
            "messages": one.messages_bytes.decode(),
        }
        for one in run.variants.all()
    ]


def _trajectory(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "id": str(trajectory.pk),
        "variant": trajectory.variant.slug,
        "number": trajectory.number,
        "state": trajectory.state,
        "ending": trajectory.ending,
        "reason": trajectory.reason,
        "created_at": moment(trajectory.created_at),
        "started_at": moment(trajectory.started_at),
        "ended_at": moment(trajectory.ended_at),
        "turns": _turns(trajectory),
    }


def _turns(trajectory: Trajectory) -> list[dict[str, Any]]:
    """In order of the chain; `parent` is the place of the turn before among them, from 0."""
    turns = turns_of(trajectory)
    places = {turn.pk: place for place, turn in enumerate(turns)}
    told = []
    for turn in turns:
        record = turn_record(turn)
        del record["source"]  # the submission has it
        told.append({**record, "parent": places.get(turn.parent_id)})
    return told


def _submission(submission: Submission) -> BundleFile:
    if submission.evaluation is None:
        path = f"submissions/{submission.pk}.json"
        return BundleFile(path=path, data=pretty(_unfinished(submission)))
    out = io.BytesIO()
    bundle_write(submission=submission, out=out, artifacts=False)
    return BundleFile(
        path=f"submissions/{submission.pk}.zip", data=out.getvalue(), packing=zipfile.ZIP_STORED
    )


def _unfinished(submission: Submission) -> dict[str, Any]:
    """A kernel without a verdict that holds: cancelled, faulted or withdrawn."""
    return {
        "id": str(submission.pk),
        "name": submission.name,
        "description": submission.description,
        "entrant": entrant_summary(submission.entrant),
        "problem": strict_loads(submission.problem.record_json),
        "candidate": strict_loads(submission.candidate_json),
        "state": submission.state,
        "message": submission.message,
        "created_at": moment(submission.created_at),
        "ended_at": moment(submission.ended_at),
    }


def moment(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
