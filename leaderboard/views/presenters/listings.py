"""Machine code as it stands in the binary, with target instructions marked and their counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from evaluator.records.evaluation import AnyStageResult
from evaluator.records.evidence import CountersEvidence, InstructionCount
from evaluator.sass import Instruction, Match, match_instruction, parse_listing
from evaluator.targets import Target
from leaderboard.models import StageRecord
from leaderboard.templatetags.machine_code import function_name

PAGE_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`match` where it belongs to a target family; `count` where the profiler counted it."""

    instruction: Instruction
    match: Match | None
    count: InstructionCount | None

    @property
    def anchor(self) -> str:
        return f"a{self.instruction.address:04x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """`number` names it in the address of the page."""

    number: int
    symbol: str
    name: str
    rows: tuple[Row, ...]

    @property
    def match_count(self) -> int:
        return sum(row.match is not None for row in self.rows)

    @property
    def warp_executions(self) -> int | None:
        """Of its target instructions, all together; None where nothing was counted."""
        counted = [row.count.warp_executions for row in self.rows if row.count]
        return sum(counted) if counted else None

    @property
    def page_count(self) -> int:
        return max(1, -(-len(self.rows) // PAGE_ROWS))

    @property
    def marks(self) -> tuple[tuple[int, Row], ...]:
        """(page, row) of each target instruction."""
        return tuple(
            (place // PAGE_ROWS + 1, row) for place, row in enumerate(self.rows) if row.match
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    functions: tuple[Function, ...]
    families: tuple[str, ...]
    is_counted: bool

    @property
    def first_of_interest(self) -> int:
        """Number of the function with the most target instructions; the first without any."""
        best = max(self.functions, key=lambda one: (one.match_count, -one.number))
        return best.number


def listing(text: str, target: Target, results: Sequence[AnyStageResult]) -> Listing:
    """Each instruction of the text, in order; `results` are the submission's stages."""
    counts = _counts(results)
    rows = [
        Row(
            instruction=one,
            match=match_instruction(one, target.families),
            count=counts.get((one.function, one.address)),
        )
        for one in parse_listing(text)
    ]
    groups = groupby(rows, key=lambda row: row.instruction.function)
    return Listing(
        functions=tuple(
            Function(number=number, symbol=symbol, name=function_name(symbol), rows=tuple(some))
            for number, (symbol, some) in enumerate(groups, 1)
        ),
        families=target.families,
        is_counted=bool(counts),
    )


def _counts(results: Sequence[AnyStageResult]) -> Mapping[tuple[str, int], InstructionCount]:
    for result in results:
        if isinstance(result.evidence, CountersEvidence):
            return {(one.function, one.address): one for one in result.evidence.instructions}
    return {}


def sass_record(records: Sequence[StageRecord]) -> StageRecord | None:
    """The record whose artifact is the listing; None where that stage left none."""
    for record in records:
        if record.stage == "sass" and any(
            use.role == "sass" for use in record.stage_artifacts.all()
        ):
            return record
    return None
