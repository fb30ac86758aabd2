"""The rules page, generated from the very tables that verdicts and badges use."""

from dataclasses import dataclass

from evaluator.records.summary import LANE_OF
from evaluator.records.verdicts import Lane, Stage, Tier, Verdict
from leaderboard.views.presenters.words import (
    STAGES,
    TIERS,
    VERDICTS,
    Badge,
    Meaning,
    verdict_badge,
)

BLAME = {Verdict.PASSED: "nobody's", Verdict.INCONCLUSIVE: "nobody's"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRule:
    verdict: Verdict
    badge: Badge
    meaning: Meaning
    blame: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRule:
    number: int
    stage: Stage
    name: str
    text: str
    lane: Lane


def verdict_rules() -> tuple[VerdictRule, ...]:
    return tuple(
        VerdictRule(
            verdict=verdict,
            badge=verdict_badge(verdict),
            meaning=VERDICTS[verdict],
            blame=BLAME.get(verdict, "the author's"),
        )
        for verdict in Verdict
    )


def stage_rules() -> tuple[StageRule, ...]:
    return tuple(
        StageRule(
            number=number,
            stage=stage,
            name=STAGES[stage][0],
            text=STAGES[stage][1],
            lane=LANE_OF[stage],
        )
        for number, stage in enumerate(Stage, 1)
    )


def tier_rules() -> tuple[tuple[Tier, str], ...]:
    return tuple(TIERS.items())
