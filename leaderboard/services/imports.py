"""Runs that somebody else made and reports: as self-reported rows, all of a file or nothing.

An entrant a model, a run an experiment; no endpoint, no prompts, no sources, and every page of them
says self-reported. What is here already stays; a file that tells it otherwise is refused.
"""

import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evaluator.agent.messages import canonical_bytes
from evaluator.records.base import digest_of, sha256_hex
from evaluator.records.verdicts import Verdict
from leaderboard.models import Entrant, ModelRun, Problem, RunVariant, Trajectory, Turn
from leaderboard.services.audit import audit_append
from leaderboard.services.entrants import model_entrant_of
from leaderboard.services.imports_notes import Notes, read_notes
from leaderboard.services.imports_reading import (
    ImportRefused,
    Offer,
    ReportedTurn,
    RowError,
    read_turns,
)
from leaderboard.services.standings_update import standing_update

REPORTER = "ptxbench"
"""Who owns what is reported, unless told otherwise: an account that nobody can sign in to."""

NAMESPACE = uuid.UUID("5f0c8a52-6d3a-4f3e-9d0f-3c4f2a7f9b11")
LANGUAGE = "cuda"
NOTHING = zlib.compress(b"")
NO_BYTES = sha256_hex(b"")
NOT_TOLD = "the report does not say why it ended before its plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """`left_out`: why, by run."""

    runs: list[ModelRun]
    turn_count: int
    known: int
    left_out: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """One run to be: the turns of an experiment that share a knowledge level."""

    name: str
    level: str
    trajectories: dict[str, list[ReportedTurn]]

    @property
    def first(self) -> ReportedTurn:
        return next(iter(self.trajectories.values()))[0]

    @property
    def digest(self) -> str:
        told = [
            [place, turn.number, turn.label, turn.speedup, turn.reasoning_tokens]
            for place, turns in self.trajectories.items()
            for turn in turns
        ]
        first = self.first
        return digest_of([self.name, first.model, first.target, first.problem, self.level, told])


def turns_import(*, path: Path, notes: Notes | None = None, reporter: str = REPORTER) -> Imported:
    """The whole file as self-reported runs, in one transaction.

    Raises ImportRefused, OSError, ValueError (a reporter's name that is a person's).
    """
    notes = notes or read_notes()
    problems = {row.name: row for row in Problem.objects.current()}
    spared = {name for name, note in notes.runs.items() if note.left_out_without_problem}
    offer = Offer(problems={row.name: row.targets for row in problems.values()}, spared=spared)
    turns = read_turns(path, offer)
    left_out = {
        turn.run: f"no problem {turn.problem} here: {notes.of(turn.run).left_out_without_problem}"
        for turn in turns
        if turn.problem not in problems
    }
    kept = [turn for turn in turns if turn.run not in left_out]
    with transaction.atomic():
        return _store(
            list(_reported(kept, notes)), notes, problems, reporter_of(reporter), left_out
        )


def _store(
    reported: list[Reported],
    notes: Notes,
    problems: dict[str, Problem],
    owner: User,
    left_out: dict[str, str],
) -> Imported:
    now, made, known = timezone.now(), [], 0
    for one in reported:
        if _is_here(one, owner):
            known += 1
            continue
        run = _run(one, notes, problems[one.first.problem], owner, now)
        _turns(run, one, notes, now)
        standing_update(run)
        made.append(run)
    for run in made:  # last of all: whoever writes the audit's chain must wait for nobody
        audit_append(actor="operator", action="reported", subject=run.pk)
    count = Turn.objects.filter(trajectory__run__in=made).count()
    return Imported(runs=made, turn_count=count, known=known, left_out=left_out)


def _reported(turns: list[ReportedTurn], notes: Notes) -> Iterator[Reported]:
    """Experiments in the file's order, their trajectories by name, turns by number."""
    runs: dict[str, dict[str, list[ReportedTurn]]] = {}
    for turn in turns:
        runs.setdefault(turn.run, {}).setdefault(turn.trajectory, []).append(turn)
    for name, trajectories in runs.items():
        levels: dict[str, dict[str, list[ReportedTurn]]] = {}
        for place, key in enumerate(sorted(trajectories)):
            ordered = sorted(trajectories[key], key=lambda turn: turn.number)
            levels.setdefault(notes.level_of(name, place), {})[key] = ordered
        for level, found in levels.items():
            yield Reported(name=name, level=level, trajectories=found)


def reporter_of(name: str) -> User:
    """The account of this name, made if need be. Raises ValueError for one that can sign in."""
    user, created = User.objects.get_or_create(username=name, defaults={"is_active": False})
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    if user.is_active:
        raise ValueError(
            f"{name!r} is the account of a person, who did not report this; name another reporter"
        )
    return user


def reported_entrant(owner: User, model: str) -> Entrant:
    """Reported and published rows of a model share it."""
    return model_entrant_of(owner=owner, model=model)


def _identifier(one: Reported, owner: User) -> uuid.UUID:
    return uuid.uuid5(NAMESPACE, f"{owner.get_username()}\n{one.name}\n{one.level}")


def _is_here(one: Reported, owner: User) -> bool:
    """Raises ImportRefused where it is here with other turns."""
    run = ModelRun.objects.filter(pk=_identifier(one, owner)).first()
    if run is not None and run.body_digest != one.digest:
        limit = f"the run is here already with other turns, as {run.pk}; give it another name"
        first = one.first
        error = RowError(line=first.line, column="run", seen=one.name, limit=limit)
        raise ImportRefused([error])
    return run is not None


def _run(one: Reported, notes: Notes, problem: Problem, owner: User, now: datetime) -> ModelRun:
    first, longest = one.first, max(map(len, one.trajectories.values()))
    note, per_variant = notes.of(one.name), notes.trajectories_per_variant
    run = ModelRun.objects.create(
        pk=_identifier(one, owner),
        owner=owner,
        entrant=reported_entrant(owner, first.model),
        name=one.name,
        model=first.model,
        api="",
        base_url="",
        problem=problem,
        target=first.target,
        language=LANGUAGE,
        binding="",
        level=one.level,
        trajectory_count=min(per_variant, len(one.trajectories)),
        turn_count=max(notes.turns, longest),
        target_speedup=notes.target_speedup,
        max_parallel=1,
        state=ModelRun.State.DONE,
        reason=f"Self-reported. {notes.source}"[:1000],
        trust=ModelRun.Trust.SELF_REPORTED,
        scoring_version=notes.scoring_version,
        unranked_reason=note.unranked,
        harness_version=notes.scoring_version,
        body_digest=one.digest,
        created_at=now,
        started_at=now,
        ended_at=now,
    )
    _variants(run, -(-len(one.trajectories) // per_variant))
    run.digest = run.settings_digest
    run.save(update_fields=["digest"])
    return run


def _variants(run: ModelRun, count: int) -> None:
    """Prompts were not reported: a variant has a number and no messages."""
    empty = canonical_bytes(())
    RunVariant.objects.bulk_create(
        RunVariant(
            run=run,
            position=position,
            slug=f"prompt-{position + 1}",
            title=f"Prompt {position + 1}, not reported",
            packed_messages=zlib.compress(empty),
            digest=sha256_hex(empty),
        )
        for position in range(count)
    )


def _turns(run: ModelRun, one: Reported, notes: Notes, now: datetime) -> None:
    """By turn number, so that each knows the turn before; a statement for all of one number."""
    variants, each = list(run.variants.order_by("position")), notes.trajectories_per_variant
    places = [
        _trajectory(run, variants[place // each], place % each + 1, turns, now)
        for place, turns in enumerate(one.trajectories.values())
    ]
    Trajectory.objects.bulk_create(places)
    last: dict[int, Turn] = {}
    for number in range(1, run.turn_count + 1):
        batch = {}
        for place, turns in enumerate(one.trajectories.values()):
            if len(turns) >= number:
                batch[place] = _turn(run, places[place], turns[number - 1], last.get(place), now)
        Turn.objects.bulk_create(batch.values())
        last.update(batch)


def _trajectory(
    run: ModelRun, variant: RunVariant, number: int, turns: list[ReportedTurn], now: datetime
) -> Trajectory:
    met = (turns[-1].speedup or 0.0) >= run.target_speedup
    if len(turns) >= run.turn_count:
        ending, reason = Trajectory.Ending.TURNS_USED, f"all {run.turn_count} turns were taken"
    elif met:
        ending, reason = Trajectory.Ending.TARGET_MET, f"speedup {turns[-1].speedup:.3f}"
    else:
        ending, reason = Trajectory.Ending.OUT_OF_CONTEXT, NOT_TOLD
    return Trajectory(
        pk=uuid.uuid5(run.pk, turns[0].trajectory),
        run=run,
        variant=variant,
        number=number,
        state=Trajectory.State.DONE,
        ending=ending,
        reason=reason,
        created_at=now,
        started_at=now,
        ended_at=now,
    )


def _turn(
    run: ModelRun, place: Trajectory, told: ReportedTurn, before: Turn | None, now: datetime
) -> Turn:
    verdict: Verdict | None = told.verdict
    turn = Turn(
        trajectory=place,
        number=told.number,
        parent=before,
        packed_request=NOTHING,
        request_digest=NO_BYTES,
        request_byte_count=0,
        packed_reply=NOTHING,
        reasoning_tokens=told.reasoning_tokens,
        extraction_state="EXTRACTED" if verdict else "NO_CODE",
        extraction_message=f"reported as: {told.label}",
        verdict=verdict.value if verdict else "",
        speedup=told.speedup,
        called_at=now,
        replied_at=now,
        closed_at=now,
        previous_digest=before.digest if before else run.digest,
    )
    turn.call_digest = turn.computed_call_digest
    turn.digest = turn.computed_digest
    return turn
