"""What came of a case, and what that says about the judge. Pure."""

from enum import StrEnum

from evaluator.corpus.cases import Expectation, Kind
from evaluator.records.base import Record
from evaluator.records.verdicts import InstructionStatus, Stage, Tier, Verdict

TIER_RANK = {None: 1, Tier.CONTROL: 1, Tier.PAYLOAD: 2, Tier.MMA: 3}


class Outcome(Record):
    """One run of a case. `verdict` is None where stages of it could not run on this machine.

    digest   of the candidate that ran: an outcome counts while the sources are those
    fault    of ours, where one ended the run
    device   the GPU's name; None where the stages that ran need none
    """

    digest: str
    date: str
    harness_version: str
    device: str | None
    seconds: float
    verdict: Verdict | None
    stage: Stage | None
    message: str
    fault: str = ""
    target_instructions: InstructionStatus | None = None
    tier: Tier | None = None
    work_share: float | None = None
    latency_ns: float | None = None
    speedup: float | None = None


class Finding(StrEnum):
    """`caught` and `told` are refusals as expected, of cheats and of mistakes.

    harmless      a cheat that passes and gains nothing: what is shown is what it is
    hole          a cheat that passes and gains what its folder says
    forged        a cheat or a mistake that passes though it must not, or is shown as more than it
                  is
    false alarm   an honest kernel that was refused
    other         as good as expected, but by another verdict, stage, message or fact
    inconclusive  measured too noisily; to be run again
    built         built as expected; the rest needs a device that is not here
    fault         our own
    """

    CAUGHT = "caught"
    TOLD = "told"
    HARMLESS = "harmless"
    HOLE = "hole"
    HONEST = "honest"
    FORGED = "forged pass"
    FALSE_ALARM = "false alarm"
    OTHER = "other verdict"
    INCONCLUSIVE = "inconclusive"
    BUILT = "built"
    FAULT = "fault"


AS_EXPECTED = frozenset(
    {Finding.CAUGHT, Finding.TOLD, Finding.HARMLESS, Finding.HOLE, Finding.HONEST}
)


def finding_of(expected: Expectation, seen: Outcome) -> Finding:
    if seen.fault:
        return Finding.FAULT
    if seen.verdict is None:
        return Finding.FORGED if expected.ends_in_the_build else Finding.BUILT
    if seen.verdict is Verdict.PASSED:
        return _passed(expected, seen)
    if seen.verdict is Verdict.INCONCLUSIVE and seen.verdict not in expected.verdicts:
        return Finding.INCONCLUSIVE
    if expected.kind is Kind.HONEST:
        return Finding.FALSE_ALARM
    if not _refused_as_expected(expected, seen):
        return Finding.OTHER
    return Finding.CAUGHT if expected.kind is Kind.CHEAT else Finding.TOLD


def _refused_as_expected(expected: Expectation, seen: Outcome) -> bool:
    """The text belongs to the verdict that stands first; another allowed one has other words."""
    says_so = expected.message in seen.message or seen.verdict is not expected.verdict
    return seen.verdict in expected.verdicts and seen.stage in expected.stages and says_so


def _passed(expected: Expectation, seen: Outcome) -> Finding:
    if Verdict.PASSED not in expected.verdicts or _flattered(expected, seen):
        return Finding.FORGED
    if not _facts_fit(expected, seen):
        return Finding.OTHER
    if expected.kind is Kind.CHEAT:
        return Finding.HOLE if expected.hole else Finding.HARMLESS
    return Finding.HONEST


def _facts_fit(expected: Expectation, seen: Outcome) -> bool:
    if expected.target_instructions is None:
        return True
    allowed = (expected.target_instructions, *expected.also_target_instructions)
    return seen.target_instructions in allowed and (expected.tier in (None, seen.tier))


def _flattered(expected: Expectation, seen: Outcome) -> bool:
    """Whether it is shown as doing more by target instructions than it does."""
    if expected.target_instructions is None:
        return False
    return _rank(seen.target_instructions, seen.tier) > _rank(
        expected.target_instructions, expected.tier
    )


def _rank(status: InstructionStatus | None, tier: Tier | None) -> int:
    return TIER_RANK[tier] if status is InstructionStatus.EXECUTED else 0
