"""An entrant as its page shows it: kernels with their ranks, runs, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from evaluator import SCORING_VERSION
from leaderboard.models import Entrant, Evaluation, ModelRun, Problem, Submission
from leaderboard.views.presenters.lists import Listed, listed
from leaderboard.views.presenters.run_words import RUN_STATES
from leaderboard.views.presenters.words import Badge

MOST_KERNELS = 50
MOST_RUNS = 30
RECENT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run: ModelRun
    badge: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantView:
    """`kernels` are ranked evaluations with `.rank` and `.row_count` of their board."""

    entrant: Entrant
    kernels: Sequence[Evaluation]
    runs: tuple[RunRow, ...]
    recent: tuple[Listed, ...]
    submission_count: int

    @property
    def is_model(self) -> bool:
        return self.entrant.kind == Entrant.Kind.MODEL


def entrant_view(entrant: Entrant) -> EntrantView:
    """Four queries."""
    rows = Submission.objects.for_list().filter(entrant=entrant)
    runs = ModelRun.objects.for_list().filter(entrant=entrant)[:MOST_RUNS]
    return EntrantView(
        entrant=entrant,
        kernels=list(ranked_kernels(entrant)[:MOST_KERNELS]),
        runs=tuple(RunRow(run=one, badge=RUN_STATES[ModelRun.State(one.state)]) for one in runs),
        recent=tuple(listed(one) for one in rows[:RECENT]),
        submission_count=rows.values("pk").count(),
    )


def ranked_kernels(entrant: Entrant) -> QuerySet[Evaluation]:
    """What stands on current boards, the best first; ranks are counted in the database."""
    ranked = Evaluation.objects.filter(
        valid=True,
        speedup__isnull=False,
        scoring_version=SCORING_VERSION,
        trust__in=[Evaluation.Trust.VERIFIED, Evaluation.Trust.REPRODUCED],
    )
    board = ranked.filter(
        target=OuterRef("target"),
        problem__measured_digest=OuterRef("problem__measured_digest"),
        problem__name=OuterRef("problem__name"),
    ).order_by()
    current = Problem.objects.current().values("measured_digest")
    return (
        ranked.filter(submission__entrant=entrant, problem__measured_digest__in=current)
        .select_related("submission", "problem")
        .defer("record_json", "submission__candidate_json", "problem__record_json")
        .annotate(
            rank=_counted(board.filter(speedup__gt=OuterRef("speedup"))) + 1,
            row_count=_counted(board),
        )
        .order_by("target", "problem__position", F("speedup").desc(), "pk")
    )


def _counted(rows: QuerySet[Evaluation]) -> Coalesce:
    counted = rows.values("target").annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted), 0)
