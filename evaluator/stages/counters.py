"""Counters stage: did the target instructions run, and how much of the arithmetic did they do.

In        the library that is timed (same bytes); the disassembly's matches
Out       CountersEvidence: status, executions per matched instruction, work share
Verdicts  PASSED only: the evidence is a fact beside correctness and speed, never a failure
Raises    EvaluatorFault: no ncu on this machine, or another library was profiled
Source    Nsight Compute, `inst_executed` (warps) and `thread_inst_executed_true` (threads whose
          predicate holds); a wgmma runs once per warpgroup, that is per 4 warp executions, and
          HGMMA.MxNxK does 2*M*N*K operations

Unknown is never a no: missing permission, a failed profile or an unreadable report give `unknown`
with the reason. What gets past: a candidate that finds out that it is profiled and launches
something else; the launches of profile and timed run are compared when both are there.
"""

import re
from collections.abc import Iterable, Sequence

from evaluator.bench import Bench
from evaluator.device import Profile, ProfileRow, device_of
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import (
    Artifact,
    CountersEvidence,
    Ending,
    InstructionCount,
    SassEvidence,
    SassMatch,
)
from evaluator.records.verdicts import EvaluatorFault, InstructionStatus, Stage, Tier, Verdict
from evaluator.work import Work

WARPS_PER_GROUP = 4
SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)(?:\.|$)")
SPARSE = re.compile(r"\.SP(\.|$)")
TIER_ORDER = (Tier.MMA, Tier.PAYLOAD, Tier.CONTROL)
NO_SHAPE = "the opcode does not tell the shape (tcgen05): not derivable from counts"
NO_MMA = "no matrix instruction among the target instructions that ran"
SPARSE_REASON = "sparse matrix instructions: operations are not derivable from the shape"
ENDING_TEXT = "the candidate failed under the profiler: "

Result = StageResult[CountersEvidence]


def run(work: Work, bench: Bench) -> Result:
    sass = work.result(Stage.SASS)
    if sass is None or not isinstance(sass.evidence, SassEvidence):
        raise EvaluatorFault("counters: no disassembly among the results: run the build lane first")
    if not sass.evidence.literal_match:
        return absent(work.problem.flop_count)
    profile = device_of(bench).profile(work)
    kept = work.store("profile", profile.report) if profile.report else None
    return judge(profile, sass.evidence, flop_count=work.problem.flop_count, report=kept)


def absent(flop_count: int) -> Result:
    evidence = CountersEvidence(
        status=InstructionStatus.ABSENT,
        reason="no target instruction in the machine code",
        problem_flop_count=flop_count,
        work_share_reason="no target instruction in the machine code",
    )
    return _result(evidence, ())


def judge(
    profile: Profile, sass: SassEvidence, *, flop_count: int, report: Artifact | None = None
) -> Result:
    """Counts joined to the disassembly; the status and its reason follow from them alone."""
    counts = () if profile.rows is None else count_matches(profile.rows, sass.matches)
    status, reason = _status(profile, counts)
    ran = [count for count in counts if count.thread_executions > 0]
    known = status is InstructionStatus.EXECUTED
    operations, no_share = target_operations(ran) if known else (None, reason)
    evidence = CountersEvidence(
        status=status,
        reason=reason,
        tool_version=profile.tool_version,
        process=profile.process,
        launches=profile.launches,
        instructions=counts,
        tier=best_tier(count.tier for count in ran),
        target_flop_count=operations,
        problem_flop_count=flop_count,
        work_share=None if operations is None else operations / flop_count,
        work_share_reason=no_share,
        report=report,
        library_sha256=profile.library_sha256,
    )
    return _result(evidence, (report,) if report else ())


def _result(evidence: CountersEvidence, artifacts: tuple[Artifact, ...]) -> Result:
    share = "" if evidence.work_share is None else f", work share {evidence.work_share:.2f}"
    return StageResult[CountersEvidence](
        stage=Stage.COUNTERS,
        verdict=Verdict.PASSED,
        message=f"target instructions {evidence.status.value}: {evidence.reason}{share}",
        evidence=evidence,
        artifacts=artifacts,
    )


def _status(profile: Profile, counts: Sequence[InstructionCount]) -> tuple[InstructionStatus, str]:
    if profile.trouble:
        return InstructionStatus.UNKNOWN, profile.trouble
    if profile.process.ending is not Ending.FINISHED or profile.process.exit_code:
        text = profile.process.detail or f"exit code {profile.process.exit_code}"
        return InstructionStatus.UNKNOWN, ENDING_TEXT + text
    if not profile.rows:
        return InstructionStatus.UNKNOWN, "the profile holds no instruction at all"
    threads = sum(count.thread_executions for count in counts)
    if threads:
        kinds = sorted({count.family for count in counts if count.thread_executions})
        return InstructionStatus.EXECUTED, f"{', '.join(kinds)} ran in {threads} threads"
    return InstructionStatus.NOT_EXECUTED, "in the machine code, but no thread executed it"


def count_matches(
    rows: Sequence[ProfileRow], matches: Sequence[SassMatch]
) -> tuple[InstructionCount, ...]:
    """Executions of every matched instruction, launches summed.

    Joined by function and address, then by text: a kernel's name or addresses may be spelled
    differently by the profiler.
    """
    by_place = {(match.function, match.address): match for match in matches}
    by_text = {_plain(match.text): match for match in matches}
    totals: dict[tuple[str, int], InstructionCount] = {}
    for row in rows:
        match = by_place.get((row.function, row.address))
        if match is None or _plain(match.text) != _plain(row.text):
            match = by_text.get(_plain(row.text))
        if match is not None:
            place = (row.function, row.address)
            totals[place] = _added(totals.get(place), row, match)
    return tuple(totals[place] for place in sorted(totals))


def _plain(text: str) -> str:
    return " ".join(text.replace(";", " ").split())


def _added(known: InstructionCount | None, row: ProfileRow, match: SassMatch) -> InstructionCount:
    return InstructionCount(
        function=row.function,
        address=row.address,
        opcode=match.opcode,
        text=match.text,
        family=match.family,
        tier=match.tier,
        warp_executions=row.warp_executions + (known.warp_executions if known else 0),
        thread_executions=row.thread_executions + (known.thread_executions if known else 0),
    )


def target_operations(ran: Sequence[InstructionCount]) -> tuple[int | None, str | None]:
    """Floating-point operations done by matrix instructions; or None and why.

    A bare commit's dummy (destination RZ, descriptor URZ) is of the tier `control`: not counted.
    """
    matrix = [count for count in ran if count.tier is Tier.MMA]
    if not matrix:
        return None, NO_MMA
    if any(SPARSE.search(count.opcode) for count in matrix):
        return None, SPARSE_REASON
    shapes = [SHAPE.search(count.opcode) for count in matrix]
    if not all(shapes):
        return None, NO_SHAPE
    total = 0
    for count, shape in zip(matrix, shapes, strict=True):
        assert shape is not None
        m, n, k = (int(part) for part in shape.groups())
        total += count.warp_executions // WARPS_PER_GROUP * 2 * m * n * k
    return total, None


def best_tier(tiers: Iterable[Tier]) -> Tier | None:
    seen = set(tiers)
    return next((tier for tier in TIER_ORDER if tier in seen), None)
