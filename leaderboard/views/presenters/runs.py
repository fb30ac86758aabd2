"""Model runs: in a list, and one run as its page shows it: totals, grid of tiles, Fast_p."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery

from evaluator.metrics.outcomes import TrajectoryOutcome, planned_turns
from evaluator.metrics.turns import TURN_LIMITS, best_speedup, correctness_rate, fast_p
from leaderboard.models import ModelRun, RunVariant, Trajectory, Turn
from leaderboard.services.model_runs.budgets import Usage
from leaderboard.views.presenters.run_words import ENDINGS, HELD, RUN_STATES, TRAJECTORY_STATES
from leaderboard.views.presenters.turns import Tile, turn_tile
from leaderboard.views.presenters.words import Badge

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.2)
LANGUAGES = {"cuda": "CUDA C++", "cpp": "C++", "triton": "Triton"}
PLANNED = Badge(word="Planned", icon="dot", tone="idle")
NOT_TAKEN = Badge(word="Not taken", icon="dash", tone="idle")


def run_badge(run: ModelRun) -> Badge:
    return RUN_STATES[ModelRun.State(run.state)]


def trajectory_badge(trajectory: Trajectory) -> Badge:
    """How it ended, or what it does."""
    if trajectory.ending:
        return ENDINGS[Trajectory.Ending(trajectory.ending)]
    if trajectory.held and trajectory.state == Trajectory.State.WAITING:
        return HELD
    return TRAJECTORY_STATES[Trajectory.State(trajectory.state)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    run: ModelRun
    badge: Badge
    variant_count: int
    turns_taken: int
    turns_planned: int
    best_speedup: float | None


def run_rows(rows: QuerySet[ModelRun]) -> QuerySet[ModelRun]:
    """`rows` with what a list shows, still one query."""
    counted = Q(trajectories__turns__excluded=False)
    variants = RunVariant.objects.filter(run=OuterRef("pk")).order_by().values("run")
    return rows.annotate(
        turns_taken=Count("trajectories__turns", filter=counted),
        best=Max(
            "trajectories__turns__speedup",
            filter=counted & Q(trajectories__turns__verdict="PASSED"),
        ),
        variant_count=Subquery(variants.annotate(count=Count("pk")).values("count")),
    )


def listed_run(run: ModelRun) -> ListedRun:
    """A row of `run_rows`."""
    variants = run.variant_count or 0  # type: ignore[attr-defined]
    return ListedRun(
        run=run,
        badge=run_badge(run),
        variant_count=variants,
        turns_taken=run.turns_taken,  # type: ignore[attr-defined]
        turns_planned=variants * run.trajectory_count * run.turn_count,
        best_speedup=run.best,  # type: ignore[attr-defined]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One turn number of one trajectory: its tile, and the turns of it that were excluded."""

    number: int
    tile: Tile
    excluded: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    trajectory: Trajectory
    badge: Badge
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridGroup:
    variant: RunVariant
    rows: tuple[GridRow, ...]


def grid_row(trajectory: Trajectory, turns: Iterable[Turn], run: ModelRun) -> GridRow:
    """A cell for each planned turn; `turns` are the trajectory's, in order."""
    by_number: dict[int, list[Turn]] = {}
    for turn in turns:
        by_number.setdefault(turn.number, []).append(turn)
    badge = trajectory_badge(trajectory)
    counted = [n for n, row in by_number.items() if any(not one.excluded for one in row)]
    at_work = max(counted, default=0) + 1
    cells = []
    for number in range(1, max([run.turn_count, *by_number]) + 1):
        row = by_number.get(number, [])
        kept = next((one for one in row if not one.excluded), None)
        tile = turn_tile(kept, run) if kept else _absent(trajectory, number, at_work, badge)
        lost = tuple(turn_tile(one, run) for one in row if one.excluded)
        cells.append(Cell(number=number, tile=tile, excluded=lost))
    return GridRow(trajectory=trajectory, badge=badge, cells=tuple(cells))


def _absent(trajectory: Trajectory, number: int, at_work: int, badge: Badge) -> Tile:
    if not trajectory.is_open:
        label = f"turn {number}: not taken, the trajectory ended before: {badge.word}"
        return Tile(badge=NOT_TAKEN, text="", label=label)
    if number == at_work and trajectory.state != Trajectory.State.EVALUATING:
        return Tile(badge=badge, text=badge.word.lower(), label=f"turn {number}: {badge.word}")
    return Tile(badge=PLANNED, text="", label=f"turn {number}: planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One measure at each turn limit: counting only turns that ran target instructions, and all."""

    with_instructions: float | None
    any_instructions: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """`is_share` tells a share of the planned turns from a speedup."""

    name: str
    title: str
    is_share: bool
    scores: tuple[Score, ...]


def score_rows(
    outcomes: Sequence[TrajectoryOutcome], limits: Sequence[int]
) -> tuple[ScoreRow, ...]:
    share = "of the planned turns are correct and faster than"
    measures = [
        ("Correct", "Share of the planned turns that pass every check.", correctness_rate),
        *(
            (f"Fast_{p:g}", f"Share that {share} {p:g} times the baseline.", partial(_fast, p))
            for p in THRESHOLDS
        ),
        ("Best", "The largest speedup of a correct turn.", best_speedup),
    ]
    return tuple(
        ScoreRow(
            name=name,
            title=title,
            is_share=measure is not best_speedup,
            scores=tuple(_score(measure, outcomes, limit) for limit in limits),
        )
        for name, title, measure in measures
    )


def _fast(
    p: float, outcomes: Sequence[TrajectoryOutcome], *, at_most: int, instructions: bool
) -> float | None:
    return fast_p(outcomes, p, at_most=at_most, instructions=instructions)


def _score(
    measure: Callable[..., float | None], outcomes: Sequence[TrajectoryOutcome], limit: int
) -> Score:
    return Score(
        with_instructions=measure(outcomes, at_most=limit, instructions=True),
        any_instructions=measure(outcomes, at_most=limit, instructions=False),
    )


@dataclass(frozen=True, kw_only=True)
class RunView:
    """Everything is derived from rows that the view has fetched; nothing here asks the database.

    turns_of  the turns of each trajectory by its key, in order, light
    """

    run: ModelRun
    variants: Sequence[RunVariant]
    trajectories: Sequence[Trajectory]
    turns_of: dict[object, list[Turn]]
    usage: Usage
    outcomes: Sequence[TrajectoryOutcome]

    @property
    def badge(self) -> Badge:
        return run_badge(self.run)

    @cached_property
    def groups(self) -> tuple[GridGroup, ...]:
        found = groupby(self.trajectories, key=lambda one: one.variant_id)
        by_key = {variant.pk: variant for variant in self.variants}
        return tuple(
            GridGroup(
                variant=by_key[key],
                rows=tuple(grid_row(one, self.turns_of.get(one.pk, []), self.run) for one in rows),
            )
            for key, rows in found
        )

    @property
    def turn_numbers(self) -> range:
        widest = max((len(row.cells) for group in self.groups for row in group.rows), default=0)
        return range(1, max(widest, self.run.turn_count) + 1)

    @property
    def limits(self) -> tuple[int, ...]:
        """The paper's turn limits, as far as the plan reaches them."""
        within = [limit for limit in TURN_LIMITS if limit <= self.run.turn_count]
        return tuple(dict.fromkeys([*within, self.run.turn_count]))

    @cached_property
    def scores(self) -> tuple[ScoreRow, ...]:
        return score_rows(self.outcomes, self.limits)

    @property
    def planned(self) -> int:
        """The denominator of every share."""
        return planned_turns(self.outcomes)

    @property
    def has_families(self) -> bool:
        """Whether the target has instructions of its own to count."""
        return bool(self.run.target_record.families)

    @property
    def column_count(self) -> int:
        return len(self.turn_numbers) + 2

    @property
    def call_count(self) -> int:
        return self.usage.turns + self.usage.excluded_turns

    @property
    def language_title(self) -> str:
        return LANGUAGES.get(self.run.language, self.run.language)

    @property
    def parameters_text(self) -> str:
        return json.dumps(self.run.parameters, ensure_ascii=False, sort_keys=True)[:4000]

    @property
    def limits_text(self) -> str:
        """The budget in words; empty without one."""
        run = self.run
        limits = (
            (run.limit_turns, "turns"),
            (run.limit_tokens, "tokens"),
            (run.limit_cost_usd, "US dollars"),
            (run.limit_seconds, "seconds"),
        )
        return ", ".join(
            f"{limit:,.12g} {unit}".replace(",", "\u202f")
            for limit, unit in limits
            if limit is not None
        )

    @property
    def is_live(self) -> bool:
        """Whether anything on the page can still change by itself."""
        at_work = any(one.state in Trajectory.ACTIVE_STATES for one in self.trajectories)
        return self.run.is_going or at_work

    @property
    def counts(self) -> dict[str, int]:
        """Trajectories by what they do or how they ended, in words."""
        found: dict[str, int] = {}
        for one in self.trajectories:
            word = trajectory_badge(one).word.lower()
            found[word] = found.get(word, 0) + 1
        return found
