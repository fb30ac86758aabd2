"""An entrant as its page shows it: kernels with their ranks, runs, newest first."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from evaluator import SCORING_VERSION
from evaluator.targets import TARGETS
from leaderboard.charts.flows import Flows, flows_chart
from leaderboard.models import (
    Entrant,
    Evaluation,
    ModelRun,
    ModelStanding,
    Problem,
    Submission,
)
from leaderboard.services.standings_filters import LEVELS
from leaderboard.services.turn_states import states_of
from leaderboard.views.presenters.lists import Listed, listed
from leaderboard.views.presenters.run_words import RUN_STATES
from leaderboard.views.presenters.words import Badge

MOST_KERNELS = 50
MOST_RUNS = 30
RECENT = 12
LEVEL_ORDER = {level: place for place, level in enumerate(["", *LEVELS])}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run: ModelRun
    badge: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """One problem under several kinds of knowledge, all else equal."""

    target: str
    problem: str
    rows: tuple[ModelStanding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantView:
    """`kernels` are ranked evaluations with `.rank` and `.row_count` of their board.

    chosen  the standing whose turns are drawn in `flows`
    """

    entrant: Entrant
    standings: tuple[ModelStanding, ...]
    chosen: ModelStanding | None
    flows: Flows | None
    kernels: Sequence[Evaluation]
    runs: tuple[RunRow, ...]
    recent: tuple[Listed, ...]
    submission_count: int

    @property
    def is_model(self) -> bool:
        return self.entrant.kind == Entrant.Kind.MODEL

    @property
    def ablations(self) -> tuple[Ablation, ...]:
        """Where the same problem was given with several kinds of knowledge."""
        found: dict[tuple[object, ...], list[ModelStanding]] = {}
        for one in self.standings:
            key = (one.target, one.problem_name, one.language, one.scoring_version, one.trust)
            found.setdefault(key, []).append(one)
        return tuple(
            Ablation(target=rows[0].target, problem=rows[0].problem_name, rows=tuple(rows))
            for rows in found.values()
            if len(rows) > 1
        )


def standings_of_entrant(entrant: Entrant) -> list[ModelStanding]:
    """Current problems only, by target, problem, and knowledge from little to much."""
    order = {
        one.measured_digest: one.position
        for one in Problem.objects.current().only("measured_digest", "position")
    }
    rows = ModelStanding.objects.filter(entrant=entrant, measured_digest__in=order)
    targets = list(TARGETS)
    return sorted(
        rows.defer("curve_json").select_related("newest_run"),
        key=lambda one: (
            one.trust == ModelStanding.Trust.PUBLISHED,
            targets.index(one.target),
            order[one.measured_digest],
            LEVEL_ORDER.get(one.level, len(LEVEL_ORDER)),
            one.pk,
        ),
    )


def entrant_view(entrant: Entrant, chosen: ModelStanding | None) -> EntrantView:
    """`chosen`: the standing whose turns are drawn; without one that with the most turns."""
    standings = standings_of_entrant(entrant)
    taken = [one for one in standings if one.taken_turns]
    drawn = chosen or max(taken, key=lambda one: one.taken_turns or 0, default=None)
    states = states_of(drawn) if drawn else []
    rows = Submission.objects.for_list().filter(entrant=entrant)
    runs = ModelRun.objects.for_list().filter(entrant=entrant)[:MOST_RUNS]
    return EntrantView(
        entrant=entrant,
        standings=tuple(standings),
        chosen=drawn,
        flows=flows_chart(states, max(map(len, states), default=0)),
        kernels=ranked_kernels(entrant),
        runs=tuple(RunRow(run=one, badge=RUN_STATES[ModelRun.State(one.state)]) for one in runs),
        recent=tuple(listed(one) for one in rows[:RECENT]),
        submission_count=rows.values("pk").count(),
    )


def ranked_kernels(entrant: Entrant) -> list[Evaluation]:
    """What stands on current boards, board by board, the best first; two queries.

    Each has `rank` and `row_count`, from the speedups of its board.
    """
    ranked = Evaluation.objects.filter(
        valid=True,
        speedup__isnull=False,
        scoring_version=SCORING_VERSION,
        trust__in=[Evaluation.Trust.VERIFIED, Evaluation.Trust.REPRODUCED],
    )
    current = Problem.objects.current().values("measured_digest")
    own = ranked.filter(submission__entrant=entrant, problem__measured_digest__in=current)
    rows = list(
        own.select_related("submission", "problem")
        .defer("record_json", "submission__candidate_json", "problem__record_json")
        .order_by("target", "problem__position", "-speedup", "pk")[:MOST_KERNELS]
    )
    boards = _speedups(ranked, {_board_of(row) for row in rows})
    for row in rows:
        speedups = boards[_board_of(row)]
        row.rank = len(speedups) - bisect_right(speedups, row.speedup) + 1
        row.row_count = len(speedups)
    return rows


def _board_of(row: Evaluation) -> tuple[str, str, str]:
    return row.target, row.problem.name, row.problem.measured_digest


def _speedups(
    ranked: QuerySet[Evaluation], boards: set[tuple[str, str, str]]
) -> dict[tuple[str, str, str], list[float]]:
    """Of every row of these boards, sorted upwards."""
    wanted = Q(pk__in=[])
    for target, name, measured in boards:
        wanted |= Q(target=target, problem__name=name, problem__measured_digest=measured)
    found: dict[tuple[str, str, str], list[float]] = {board: [] for board in boards}
    names = ("target", "problem__name", "problem__measured_digest", "speedup")
    for target, name, measured, speedup in ranked.filter(wanted).values_list(*names):
        found[target, name, measured].append(speedup)
    return {board: sorted(speedups) for board, speedups in found.items()}
