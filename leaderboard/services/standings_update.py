"""Standings follow their turns: in the transaction that closes a turn, and the same by rebuild.

A run's tally is read from its own turns, a standing from the tallies of its cell. So one turn costs
what its run planned, however many turns the site holds. Order of locks: tally, standing, and only
then the audit's chain.
"""

import json
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from evaluator.metrics.curves import Curve, curve_of, curve_sum
from evaluator.metrics.turns import THRESHOLDS, Triplet
from evaluator.records.base import canonical_json
from evaluator.targets import TARGETS
from leaderboard.models import ModelRun, ModelStanding, RunTally, Turn
from leaderboard.models.standing import cell_of
from leaderboard.services.model_runs.outcomes import outcomes_of

NANO = 10**9
PUBLISHED = ModelStanding.Trust.PUBLISHED
SUMMED = (
    "planned_turns",
    "taken_turns",
    "excluded_turns",
    "unmetered_turns",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
)
KEPT = ("id", "updated_at")


def standing_update(run: ModelRun) -> None:
    """Inside the caller's transaction, before it writes to the audit's chain."""
    tally_write(run)
    cell_write(cell_of(run))


def standings_of_submission(submission_id: object) -> None:
    """After an evaluation of a kernel came, went or came back; inside the caller's transaction.

    A turn that waits for its first evaluation is not closed and changes nothing yet.
    """
    closed = Turn.objects.filter(submission_id=submission_id, closed_at__isnull=False)
    runs = ModelRun.objects.filter(pk__in=closed.values("trajectory__run"))
    for run in runs.select_related("problem").order_by("pk"):
        standing_update(run)


@transaction.atomic
def standings_rebuild() -> int:
    """Every measured standing anew from its turns; how many there are. Published rows stay."""
    RunTally.objects.all().delete()
    ModelStanding.objects.exclude(trust=PUBLISHED).delete()
    cells: dict[str, dict[str, object]] = {}
    for run in ModelRun.objects.select_related("problem").order_by("created_at", "pk").iterator():
        tally_write(run)
        cell = cell_of(run)
        cells[canonical_json({name: str(value) for name, value in cell.items()})] = cell
    for cell in cells.values():
        cell_write(cell)
    return ModelStanding.objects.exclude(trust=PUBLISHED).count()


def tally_write(run: ModelRun) -> None:
    """The run's tally, or none where it counts nowhere or has closed no turn.

    Its row is held before the turns are read, for the same reason as a standing's.
    """
    blank = {"planned_turns": 0, "taken_turns": 0}
    held = RunTally.objects.select_for_update(of=("self",))
    tally, _ = held.get_or_create(run=run, defaults=blank)
    stored = Turn.objects.filter(trajectory__run=run, closed_at__isnull=False)
    columns = _turn_columns(run, stored)
    if run.unranked_reason or not columns["taken_turns"] + columns["excluded_turns"]:
        tally.delete()
        return
    curve = curve_of(outcomes_of(run, so_far=True))
    columns.update(planned_turns=curve.steps().planned, curve_json=_text(curve))
    RunTally.objects.filter(pk=run.pk).update(**columns)


def _turn_columns(run: ModelRun, stored: QuerySet[Turn]) -> dict[str, Any]:
    unmetered = Q(prompt_tokens=None) | Q(completion_tokens=None)
    seen = stored.aggregate(
        taken_turns=Count("pk", filter=Q(excluded=False)),
        excluded_turns=Count("pk", filter=Q(excluded=True)),
        unmetered_turns=Count("pk", filter=unmetered),
        unpriced=Count("pk", filter=Q(cost_usd=None)),
        prompt_tokens=Sum("prompt_tokens", default=0),
        completion_tokens=Sum("completion_tokens", default=0),
        reasoning_tokens=Sum("reasoning_tokens", default=0),
        cost=Sum("cost_usd", default=0.0),
    )
    unpriced, cost = seen.pop("unpriced"), seen.pop("cost")
    return {**seen, "cost_nano_usd": None if unpriced else round(cost * NANO)}


def cell_write(cell: dict[str, Any]) -> None:
    """The sum of the cell's tallies; no row where nothing counts.

    The standing's row is held before the tallies are read: of two runs that close a turn at once,
    the second waits and then sees the first one's.
    """
    blank = {"planned_turns": 0, "taken_turns": 0, "updated_at": timezone.now()}
    held = ModelStanding.objects.select_for_update(of=("self",))
    standing, _ = held.get_or_create(**cell, defaults=blank)
    tallies = _tallies(cell)
    if not tallies:
        standing.delete()
        return
    for name, value in _sums(tallies, str(cell["target"])).items():
        setattr(standing, name, value)
    standing.save()


def _sums(tallies: list[RunTally], target: str) -> dict[str, Any]:
    costs = [one.cost_nano_usd for one in tallies if one.cost_nano_usd is not None]
    newest = max((one.run for one in tallies), key=lambda run: (run.created_at, str(run.pk)))
    return {
        **{name: sum(getattr(one, name) for one in tallies) for name in SUMMED},
        **curve_columns(curve_sum(one.curve for one in tallies), target),
        "cost_nano_usd": sum(costs) if len(costs) == len(tallies) else None,
        "run_count": len(tallies),
        "newest_run_id": newest.pk,
        "is_final": not any(one.run.is_open for one in tallies),
        "updated_at": timezone.now(),
    }


def _tallies(cell: dict[str, Any]) -> list[RunTally]:
    guided = str(cell["level"]).endswith("+guidance")
    rows = RunTally.objects.filter(
        run__entrant_id=cell["entrant_id"],
        run__problem__name=cell["problem_name"],
        run__problem__measured_digest=cell["measured_digest"],
        run__target=cell["target"],
        run__language=cell["language"],
        run__level=str(cell["level"]).removesuffix("+guidance"),
        run__guidance=guided,
        run__scoring_version=cell["scoring_version"],
        run__trust=cell["trust"],
    )
    return list(rows.select_related("run").defer("run__key_ciphertext", "run__parameters"))


def curve_columns(curve: Curve, target: str) -> dict[str, Any]:
    """Triplets and Fast_p at the usual thresholds, as every board shows them."""
    knows = bool(TARGETS[target].families) and curve.knows_instructions()
    return {
        "curve_json": _text(curve),
        "knows_instructions": knows,
        "fast_json": json.dumps([_fast(curve, False), _fast(curve, True) if knows else None]),
        **triplet_columns("rate", curve.rates()),
        **triplet_columns("best", curve.bests()),
        **triplet_columns("target_rate", curve.rates(instructions=True) if knows else NONE),
        **triplet_columns("target_best", curve.bests(instructions=True) if knows else NONE),
    }


NONE = Triplet(first=None, fourth=None, eighth=None)


def triplet_columns(name: str, values: Triplet) -> dict[str, float | None]:
    return {f"{name}_1": values.first, f"{name}_4": values.fourth, f"{name}_8": values.eighth}


def _fast(curve: Curve, instructions: bool) -> list[float | None]:
    steps = curve.steps(at_most=8, instructions=instructions)
    return [steps.fast_p(p) for p in THRESHOLDS]


def _text(curve: Curve) -> str:
    return json.dumps(curve.to_json(), separators=(",", ":"))


def standing_values(standing: ModelStanding) -> dict[str, Any]:
    """What a rebuild must reproduce: every column but the row's number and time."""
    return {
        field.attname: getattr(standing, field.attname)
        for field in ModelStanding._meta.concrete_fields
        if field.name not in KEPT
    }
