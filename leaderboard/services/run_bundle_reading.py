"""Taking a model run in: nothing is stored before every digest and every chain was checked."""

import zlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evaluator import SCORING_VERSION
from evaluator.records.base import canonical_json, digest_of, sha256_hex, strict_loads
from evaluator.records.candidate import Candidate
from evaluator.records.problem import Problem as ProblemRecord
from leaderboard.models import Entrant, ModelRun, RunVariant, Submission, Trajectory, Turn
from leaderboard.services.archive import BrokenBundle, archive_files, inner_files
from leaderboard.services.audit import audit_append
from leaderboard.services.bundle_reading import (
    Bundle,
    bundle_load,
    bundle_of,
    check_files,
    manifest_of,
)
from leaderboard.services.catalogue import problem_row
from leaderboard.services.run_bundle import FORMAT, RUN_COLUMNS, RUN_TIMES
from leaderboard.services.standings_update import standing_update

MAX_FILES = 20_000
OWNER = "recorded"
"""Who owns runs that were taken in: an account that nobody can sign in to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBundle:
    """A verified bundle, parsed; `turns` by trajectory, not saved yet."""

    run: dict[str, Any]
    problem: ProblemRecord
    variants: list[dict[str, Any]]
    trajectories: list[dict[str, Any]]
    turns: dict[str, list[Turn]]
    submissions: list[Bundle]
    unfinished: list[dict[str, Any]]

    @property
    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = self.run["settings"]
        return found


def run_bundle_read(path: Path) -> RunBundle:
    """Raises BrokenBundle, which says what was seen and expected."""
    files = archive_files(path, most=MAX_FILES)
    manifest = manifest_of(path.name, files, FORMAT)
    check_files(path.name, files, manifest["files"])
    trajectories = [strict_loads(data) for data in _below(files, "trajectories/").values()]
    bundle = RunBundle(
        run=strict_loads(files["run.json"]),
        problem=ProblemRecord.from_json(files["problem.json"]),
        variants=strict_loads(files["variants.json"]),
        trajectories=trajectories,
        turns={one["id"]: [_turn(turn) for turn in one["turns"]] for one in trajectories},
        submissions=_submissions(files, manifest["not_kept"]),
        unfinished=[
            strict_loads(data)
            for name, data in _below(files, "submissions/").items()
            if name.endswith(".json")
        ],
    )
    _check_settings(path.name, bundle)
    _check_variants(path.name, bundle)
    _check_turns(path.name, bundle)
    return bundle


def _below(files: dict[str, bytes], folder: str) -> dict[str, bytes]:
    return {name: data for name, data in sorted(files.items()) if name.startswith(folder)}


def _submissions(files: dict[str, bytes], not_kept: dict[str, str]) -> list[Bundle]:
    found = []
    for name, data in _below(files, "submissions/").items():
        if name.endswith(".zip"):
            inner = inner_files(name, data)
            artifacts = _artifacts_of(name, inner, files, not_kept)
            found.append(bundle_of(name, {**inner, **artifacts}, not_kept=not_kept))
    return found


def _artifacts_of(
    name: str, inner: dict[str, bytes], files: dict[str, bytes], not_kept: dict[str, str]
) -> dict[str, bytes]:
    """The artifacts that a submission's own manifest names, by the names that it gives them."""
    found = {}
    for path, sha256 in strict_loads(inner.get("manifest.json", b"{}")).get("files", {}).items():
        if path.startswith("artifacts/") and sha256 not in not_kept:
            if (data := files.get(f"artifacts/{sha256}")) is None:
                raise BrokenBundle(f"{name}: {path[:200]} is neither here nor named as not kept")
            found[path] = data
    return found


def _check_settings(name: str, bundle: RunBundle) -> None:
    computed, told = digest_of(bundle.settings), bundle.run["digest"]
    if computed != told:
        raise BrokenBundle(f"{name}: run.json: settings have digest {computed}, told is {told}")
    if bundle.settings["problem_digest"] != bundle.problem.digest:
        raise BrokenBundle(f"{name}: problem.json is not the problem that the settings name")


def _check_variants(name: str, bundle: RunBundle) -> None:
    seen = {one["slug"]: sha256_hex(one["messages"].encode()) for one in bundle.variants}
    if seen != bundle.settings["variants"]:
        raise BrokenBundle(f"{name}: variants.json: the prompts are not those of the settings")


def _check_turns(name: str, bundle: RunBundle) -> None:
    """Requests have their digests, and each trajectory's chain begins with the settings'."""
    for trajectory in bundle.trajectories:
        previous = bundle.run["digest"]
        for turn, told in zip(bundle.turns[trajectory["id"]], trajectory["turns"], strict=True):
            where = f"{name}: {trajectory['variant']}/{trajectory['number']} turn {turn.number}"
            if sha256_hex(turn.request_bytes) != turn.request_digest:
                raise BrokenBundle(f"{where}: the request is not the one of its digest")
            if (turn.call_record, turn.outcome_record) != (told["call"], told["outcome"]):
                raise BrokenBundle(f"{where}: its record and its parts tell different things")
            if turn.previous_digest != previous:
                raise BrokenBundle(f"{where} breaks the chain: it does not follow {previous}")
            if (turn.computed_call_digest, turn.computed_digest) != (turn.call_digest, turn.digest):
                raise BrokenBundle(f"{where} breaks the chain: its digests are not its record's")
            previous = turn.digest


def _turn(told: dict[str, Any]) -> Turn:
    """The turn as a row that is not saved; of the record only what its columns hold."""
    call, outcome, request = told["call"], told["outcome"], told["request"]
    body = request["body"].encode()
    same = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
    words = ("reported_model", "request_id", "finish_reason")
    return Turn(
        number=told["number"],
        repeat=told["repeat"],
        packed_request=zlib.compress(body),
        request_digest=request["sha256"],
        request_byte_count=len(body),
        packed_reply=zlib.compress(told["reply"].encode()),
        answer=told["answer"],
        reasoning=told["reasoning"],
        cost_usd=told["cost_usd"],
        extraction_state=call["extraction_state"],
        extraction_message=call["extraction_message"],
        submission_id=told["submission"],
        is_shared=told["is_shared"],
        verdict=outcome["verdict"] or "",
        speedup=outcome["speedup"],
        instruction_status=outcome["instruction_status"] or "",
        evaluation_digest=outcome["evaluation_digest"],
        feedback=outcome["feedback"],
        excluded=outcome["excluded"],
        excluded_reason=outcome["excluded_reason"],
        called_at=datetime.fromisoformat(call["called_at"]),
        replied_at=datetime.fromisoformat(call["replied_at"]),
        closed_at=_when(outcome["closed_at"]),
        previous_digest=told["previous_digest"],
        call_digest=told["call_digest"],
        digest=told["digest"],
        **{name: call[name] for name in (*same, *words)},
    )


@transaction.atomic
def run_bundle_load(bundle: RunBundle) -> ModelRun | None:
    """The run as it was, with its kernels; None if it is here already.

    Raises BrokenBundle where a kernel cannot be taken in, and nothing is stored then.
    """
    if ModelRun.objects.filter(pk=bundle.settings["run"]).exists():
        return None
    for submission in bundle.submissions:
        bundle_load(submission)
    for told in bundle.unfinished:
        _unfinished(told)
    _check_submissions(bundle)
    run = _run(bundle)
    variants = {one["slug"]: _variant(run, n, one) for n, one in enumerate(bundle.variants)}
    for told in bundle.trajectories:
        _trajectory(run, variants, told, bundle.turns[told["id"]])
    if run.settings_digest != run.digest:
        raise BrokenBundle(f"{run.pk}: taken in, the settings would have another digest")
    standing_update(run)
    audit_append(actor="operator", action="imported", subject=run.pk)
    return run


def _check_submissions(bundle: RunBundle) -> None:
    """An entrant hands in equal sources once, so its kernel may be here under another name."""
    wanted = {
        str(turn.submission_id)
        for turns in bundle.turns.values()
        for turn in turns
        if turn.submission_id
    }
    here = Submission.objects.filter(pk__in=wanted).values_list("pk", flat=True)
    if missing := sorted(wanted - {str(pk) for pk in here}):
        raise BrokenBundle(
            f"submission {missing[0]} of a turn is not in the bundle, or its entrant handed in the "
            "same kernel here before under another identifier; load it into an empty site"
        )


def _run(bundle: RunBundle) -> ModelRun:
    said, settings = bundle.run, bundle.settings
    pack = settings["pack"]
    problem, _ = problem_row(bundle.problem)
    same = ("model", "api", "endpoint_digest", "parameters", "target", "language", "binding")
    plan = ("trajectory_count", "turn_count", "target_speedup", "policy", "harness_version")
    return ModelRun.objects.create(
        pk=settings["run"],
        batch=said["batch"],
        owner=_owner(),
        entrant=_entrant(said["entrant"]),
        problem=problem,
        base_url=f"https://{said['endpoint_host']}" if said["endpoint_host"] else "",
        pack_name=pack["name"],
        pack_version=pack["version"],
        pack_digest=pack["digest"],
        level=pack["level"],
        guidance=pack["guidance"],
        digest=said["digest"],
        trust=ModelRun.Trust(settings.get("trust", ModelRun.Trust.VERIFIED)),
        scoring_version=said.get("scoring_version", SCORING_VERSION),
        unranked_reason=said.get("unranked_reason", ""),
        body_digest=said.get("report_digest", ""),
        **{name: settings[name] for name in (*same, *plan)},
        **{name: said[name] for name in RUN_COLUMNS},
        **{name: _when(said[name]) for name in RUN_TIMES},
    )


def _owner() -> User:
    owner, created = User.objects.get_or_create(username=OWNER, defaults={"is_active": False})
    if created:
        owner.set_unusable_password()
        owner.save(update_fields=["password"])
    return owner


def _entrant(said: dict[str, str]) -> Entrant:
    told = {"display_name": said["display_name"], "kind": said["kind"]}
    return Entrant.objects.get_or_create(slug=said["slug"], defaults=told)[0]


def _variant(run: ModelRun, position: int, said: dict[str, Any]) -> RunVariant:
    return RunVariant.objects.create(
        run=run,
        position=position,
        slug=said["slug"],
        title=said["title"],
        schedules=said["schedules"],
        packed_messages=zlib.compress(said["messages"].encode()),
        digest=said["digest"],
    )


def _trajectory(
    run: ModelRun, variants: dict[str, RunVariant], said: dict[str, Any], turns: list[Turn]
) -> None:
    trajectory = Trajectory.objects.create(
        pk=said["id"],
        run=run,
        variant=variants[said["variant"]],
        number=said["number"],
        state=Trajectory.State(said["state"]),
        ending=Trajectory.Ending(said["ending"]),
        reason=said["reason"],
        created_at=datetime.fromisoformat(said["created_at"]),
        started_at=_when(said["started_at"]),
        ended_at=_when(said["ended_at"]),
    )
    for turn, told in zip(turns, said["turns"], strict=True):
        turn.trajectory = trajectory
        turn.parent = turns[told["parent"]] if told["parent"] is not None else None
        turn.save(force_insert=True)


def _unfinished(said: dict[str, Any]) -> None:
    """A kernel without a verdict: it is here as one that was given up."""
    if Submission.objects.filter(pk=said["id"]).exists():
        return
    candidate = Candidate.model_validate(said["candidate"])
    faulted = said["state"] == Submission.State.FAULTED
    problem, _ = problem_row(ProblemRecord.model_validate(said["problem"]))
    Submission.objects.create(
        pk=said["id"],
        entrant=_entrant(said["entrant"]),
        problem=problem,
        target=candidate.target,
        language=candidate.language.value,
        binding=candidate.binding.value,
        name=said["name"],
        description=said["description"],
        candidate_json=canonical_json(said["candidate"]),
        candidate_digest=digest_of(said["candidate"]),
        state=Submission.State.FAULTED if faulted else Submission.State.CANCELLED,
        message=said["message"] or "It had no verdict where it was recorded.",
        created_at=datetime.fromisoformat(said["created_at"]),
        ended_at=_when(said["ended_at"]),
    )


def _when(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
