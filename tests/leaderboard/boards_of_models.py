"""A board of models for tests: runs with known turns, and their standings."""

from typing import Any

from django.contrib.auth.models import User

from leaderboard.models import ModelRun, Problem
from leaderboard.services.standings_update import standing_update
from tests.leaderboard import factories, run_factories

VARIANTS = ("no-schedule", "split-k")


def stand(
    problem: Problem, owner: User, model: str, *speedups: float | None, **columns: Any
) -> ModelRun:
    """A finished run: a turn for each speedup in the first variant, None for a build error.

    The second variant has one turn that does not build. 8 turns are planned, 4 a variant.
    """
    columns = {"variants": VARIANTS, "turns": 4, **columns}
    run = run_factories.run(problem, owner=owner, model=model, **columns)
    for variant, some in zip(VARIANTS, (speedups, (None,)), strict=True):
        place = run_factories.trajectory(run, 1, variant)
        broken = run_factories.failed(run, "compilation", "COMPILE_ERROR")
        for speedup in some:
            results = broken if speedup is None else None
            run_factories.turn(place, kernel=factories.KERNEL, speedup=speedup, results=results)
    run_factories.finish(run)
    standing_update(run)
    return run
