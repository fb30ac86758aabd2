"""SASS stage: which of the target's own instructions stand in the binary.

In        the library that compilation made, by its digest: the very bytes that are timed
Out       SassEvidence: counts by opcode, rows of the target's families; artifact `sass`
Verdicts  PASSED, whatever is found: an absent family is a fact about the kernel, not a failure;
          COMPILE_ERROR: cuobjdump cannot read the library
Raises    EvaluatorFault: cuobjdump is missing
Source    the paper's families; spelling as cuobjdump 13 prints it

A static match never says that an instruction ran; the counters stage does. Code that a library
carries as data and loads through the driver is not seen here, nor is code for another
architecture, which the target's GPU would not pick.
"""

from collections import Counter
from collections.abc import Sequence

from evaluator.bench import Bench
from evaluator.build import LIBRARY, OUT_FOLDER
from evaluator.inspection import Unreadable, tool_output
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import Artifact, OpcodeCount, SassEvidence, SassMatch
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.sass import (
    TIER_ORDER,
    count_opcodes,
    find_matches,
    functions_of,
    highest_tier,
    parse_listing,
    short_opcode,
)
from evaluator.targets import Target
from evaluator.work import Work

LISTING_BYTES = 4 << 20
MATCHES_LISTED = 1000
OPCODES_NAMED = 6
ABSENT = "no target instruction in the binary"


def run(work: Work, bench: Bench) -> StageResult[SassEvidence]:
    library, cubin = work.artifact("library"), work.artifact("cubin")
    if library is None:
        raise EvaluatorFault("sass: no library among the results; compilation must run first")
    cuobjdump = bench.toolchain.need("cuobjdump")
    with bench.sandbox.scratch() as workspace:
        (workspace / OUT_FOLDER).mkdir()
        (workspace / LIBRARY).write_bytes(work.path(library).read_bytes())
        command = [str(cuobjdump.path), "--dump-sass", f"../{LIBRARY}"]
        try:
            listing = tool_output(command, bench, workspace)
        except Unreadable as error:
            verdict = Verdict.COMPILE_ERROR
            return StageResult(stage=Stage.SASS, verdict=verdict, message=str(error))
    kept = work.store("sass", listing.encode()[:LISTING_BYTES])
    evidence = read(
        listing,
        work.target,
        cubin_sha256=(cubin or library).sha256,
        tool_version=f"cuobjdump {cuobjdump.version}",
        kept=kept,
    )
    return judge(evidence).model_copy(update={"artifacts": (kept,)})


def read(
    listing: str, target: Target, *, cubin_sha256: str, tool_version: str, kept: Artifact | None
) -> SassEvidence:
    """A listing's facts for a target. Pure."""
    instructions = parse_listing(listing)
    matches = find_matches(instructions, target.families)
    counts = count_opcodes(instructions)
    return SassEvidence(
        cubin_sha256=cubin_sha256,
        tool_version=tool_version,
        families=target.families,
        functions=functions_of(listing),
        opcode_counts=tuple(
            OpcodeCount(opcode=opcode, count=count) for opcode, count in counts.items()
        ),
        matches=tuple(
            SassMatch(
                function=match.instruction.function,
                address=match.instruction.address,
                opcode=match.instruction.opcode,
                text=match.instruction.text,
                family=match.family,
                tier=match.tier,
            )
            for match in matches[:MATCHES_LISTED]
        ),
        match_count=len(matches),
        literal_match=bool(matches),
        tier=highest_tier([match.tier for match in matches]),
        listing=kept,
    )


def judge(evidence: SassEvidence) -> StageResult[SassEvidence]:
    message = _named(evidence.matches) if evidence.literal_match else ABSENT
    if evidence.match_count > len(evidence.matches):
        message += f", first {len(evidence.matches)} of {evidence.match_count} counted"
    if evidence.tier and evidence.tier.value == "control":
        message += " (control only: no arithmetic and no data movement)"
    return StageResult(stage=Stage.SASS, verdict=Verdict.PASSED, message=message, evidence=evidence)


def _named(matches: Sequence[SassMatch]) -> str:
    """`HGMMA.64x256x16 x32, UTMALDG.2D x2`: arithmetic first, then data movement, then control."""
    counts = Counter((TIER_ORDER.index(seen.tier), short_opcode(seen.opcode)) for seen in matches)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    named = [f"{opcode} x{count}" for (_, opcode), count in ordered[:OPCODES_NAMED]]
    more = len(ordered) - len(named)
    return ", ".join(named) + (f" and {more} more opcodes" if more else "")
