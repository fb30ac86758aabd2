"""Where a model stands: materialised from turns, so that a board is read and never computed.

RunTally       what one run adds up to; written anew with each of its turns, so its cost is bounded
               by the run's plan
ModelStanding  the sum of the tallies of one cell of a board; rebuilt from them, never from turns
"""

import json
from functools import cached_property

from django.db import models
from django.db.models import Q

from evaluator.metrics.curves import Curve, curve_from_json
from leaderboard.models.entrant import Entrant
from leaderboard.models.evaluation import Evaluation
from leaderboard.models.model_run import ModelRun
from leaderboard.models.submission import TARGET_SLUGS


class Tally(models.Model):
    """Turns and their cost. Tokens and cost are of all stored turns, lost ones too.

    planned_turns    N: of trajectories that ended, their plan; of open ones, what they have taken
    taken_turns      closed and counted; None where only a paper's figures are known
    unmetered_turns  turns whose endpoint told no tokens
    cost_nano_usd    10^-9 US dollars, so that sums are exact; None where a turn's cost is unknown
    curve_json       evaluator.metrics.curves.Curve
    """

    planned_turns = models.PositiveIntegerField()
    taken_turns = models.PositiveIntegerField(null=True, blank=True)
    excluded_turns = models.PositiveIntegerField(default=0)
    unmetered_turns = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cost_nano_usd = models.PositiveBigIntegerField(null=True, blank=True)
    curve_json = models.TextField(default="[]")

    class Meta:
        abstract = True

    @cached_property
    def curve(self) -> Curve:
        return curve_from_json(json.loads(self.curve_json))


class RunTally(Tally):
    """One a run that has closed a turn and counts."""

    run = models.OneToOneField(
        ModelRun, on_delete=models.CASCADE, primary_key=True, related_name="tally"
    )

    def __str__(self) -> str:
        return f"tally of {self.run_id}"


class ModelStandingQuerySet(models.QuerySet["ModelStanding"]):
    def of_run(self, run: ModelRun) -> "ModelStandingQuerySet":
        """The cell that this run counts in: one row or none."""
        return self.filter(**cell_of(run))


class ModelStanding(Tally):
    """One cell of a board: an entrant's runs of one problem, under equal conditions.

    level            knowledge level of the pack, `+guidance` where expert guidance was given too
    measured_digest  of the problem: versions that are measured alike share a board
    rate_N, best_N   correctness rate and best speedup at <= N turns; `target_`: only turns that ran
                     the target's own instructions. None: nothing planned, correct or known
    fast_json        [[any], [with target instructions]]: Fast_p at THRESHOLDS, <= 8 turns
    is_final         no run of the cell is open
    source           of `published` rows: the paper, with its table
    """

    Trust = Evaluation.Trust

    entrant = models.ForeignKey(Entrant, on_delete=models.PROTECT, related_name="standings")
    problem_name = models.CharField(max_length=100)
    measured_digest = models.CharField(max_length=64)
    target = models.CharField(max_length=20, choices=TARGET_SLUGS)
    language = models.CharField(max_length=10)
    level = models.CharField(max_length=40, blank=True)
    scoring_version = models.CharField(max_length=20)
    trust = models.CharField(max_length=20, choices=Trust)
    rate_1 = models.FloatField(null=True, blank=True)
    rate_4 = models.FloatField(null=True, blank=True)
    rate_8 = models.FloatField(null=True, blank=True)
    target_rate_1 = models.FloatField(null=True, blank=True)
    target_rate_4 = models.FloatField(null=True, blank=True)
    target_rate_8 = models.FloatField(null=True, blank=True)
    best_1 = models.FloatField(null=True, blank=True)
    best_4 = models.FloatField(null=True, blank=True)
    best_8 = models.FloatField(null=True, blank=True)
    target_best_1 = models.FloatField(null=True, blank=True)
    target_best_4 = models.FloatField(null=True, blank=True)
    target_best_8 = models.FloatField(null=True, blank=True)
    fast_json = models.TextField(default="[null, null]")
    knows_instructions = models.BooleanField(default=True)
    run_count = models.PositiveIntegerField(default=0)
    newest_run = models.ForeignKey(
        ModelRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    is_final = models.BooleanField(default=True)
    source = models.TextField(blank=True)
    updated_at = models.DateTimeField()

    objects = ModelStandingQuerySet.as_manager()

    class Meta:
        ordering = ["target", "problem_name", "entrant", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "entrant",
                    "problem_name",
                    "measured_digest",
                    "target",
                    "language",
                    "level",
                    "scoring_version",
                    "trust",
                ],
                name="standing_is_the_only_one_of_its_cell",
            ),
            models.CheckConstraint(
                condition=(Q(trust="published") & ~Q(source=""))
                | (~Q(trust="published") & Q(source="", taken_turns__isnull=False)),
                name="standing_is_published_with_its_source",
            ),
        ]
        indexes = [
            # one board: every cell of a target
            models.Index(fields=["target", "trust", "problem_name"], name="standing_board"),
        ]

    def __str__(self) -> str:
        return f"{self.entrant_id} on {self.problem_name}, {self.target}"


def cell_of(run: ModelRun) -> dict[str, object]:
    """The columns that say in which cell a run counts."""
    return {
        "entrant_id": run.entrant_id,
        "problem_name": run.problem.name,
        "measured_digest": run.problem.measured_digest,
        "target": run.target,
        "language": run.language,
        "level": run.board_level,
        "scoring_version": run.scoring_version,
        "trust": run.trust,
    }
