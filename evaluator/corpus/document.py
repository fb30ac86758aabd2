"""`docs/corpus.md`: every case, what must come of it, and what came of it. Pure but for reading.

A case that never ran with today's sources says so.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evaluator.corpus.cases import FOLDER, Case, Kind
from evaluator.corpus.outcomes import Finding, Outcome, finding_of
from evaluator.corpus.tally import Tally
from evaluator.records.base import Record

ROWS = "rows.toml"
NOT_RUN = "not run yet"
INTRODUCTION = """\
# The corpus: cheats, mistakes and honest kernels

Made by `ptxboard corpus --table > docs/corpus.md` from `tests/candidates` and from the outcomes in
`tests/evidence/corpus`; a test compares. Run it yourself, on any machine for the part that needs no
GPU, on an H100 or H200 for all of it:

    ptxboard corpus                                   # everything that this machine can run
    ptxboard corpus --target h200 --seconds 500 --out tests/evidence/corpus/h200.json
    ptxboard corpus --target h200 --missing --out tests/evidence/corpus/h200.json   # the rest

What counts is **no forged pass and no false alarm**: a cheat must be refused, or pass as what it is
and gain nothing, or be listed here with what it gains. Expectations stand in each folder's
`expect.toml`; results are added by the command alone, with device and date, and count while the
sources are the same.
"""


class Row(Record):
    """A row of the list of known cheats; `without` says why no folder can show it."""

    number: int
    title: str
    without: str = ""


def load_rows(folder: Path = FOLDER) -> tuple[Row, ...]:
    text = (folder / ROWS).read_text(encoding="utf-8")
    return tuple(Row.model_validate(row) for row in tomllib.loads(text)["row"])


def document(cases: Sequence[Case], outcomes: Mapping[str, Outcome], rows: Sequence[Row]) -> str:
    by_name = sorted(cases, key=lambda case: case.name)
    parts = [
        INTRODUCTION,
        *_totals(cases, outcomes),
        *_holes(by_name),
        *_cheats(by_name, outcomes, rows),
        *_without_folder(rows),
        *_plain("Honest kernels", Kind.HONEST, by_name, outcomes),
        *_plain("Mistakes", Kind.MISTAKE, by_name, outcomes),
    ]
    return "\n".join(parts) + "\n"


def _totals(cases: Sequence[Case], outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    yield "## Where it stands\n"
    for target in sorted({case.candidate.target for case in cases}):
        mine = [case for case in cases if case.candidate.target == target]
        ran = [case for case in mine if case.name in outcomes]
        found = [
            (case.expectation, finding_of(case.expectation, outcomes[case.name])) for case in ran
        ]
        yield f"**{target}**: {len(ran)} of {len(mine)} cases on record.\n"
        yield from (f"- {line}" for line in Tally.of(found).lines())
        yield ""


def _holes(cases: Sequence[Case]) -> Iterator[str]:
    yield "## Holes that are left\n"
    yield "| case | what it does | what it gains |"
    yield "| --- | --- | --- |"
    for case in cases:
        why, hole = case.expectation.why, case.expectation.hole
        if hole:
            yield f"| `{case.name}` | {_cell(why)} | {_cell(hole)} |"
    yield ""


def _cheats(
    cases: Sequence[Case], outcomes: Mapping[str, Outcome], rows: Sequence[Row]
) -> Iterator[str]:
    yield "## Cheats\n"
    yield "| row | known cheat | case | target | expected | seen | why |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    titles = {row.number: row.title for row in rows}
    cheats = [case for case in cases if case.expectation.kind is Kind.CHEAT]
    for case in sorted(cheats, key=lambda case: case.expectation.cheat_row or 0):
        row = case.expectation.cheat_row or 0
        yield f"| {row} | {_cell(titles[row])} | {_columns(case, outcomes)} |"
    yield ""


def _without_folder(rows: Sequence[Row]) -> Iterator[str]:
    yield "## Known cheats without a folder\n"
    yield "| row | known cheat | why there is none |"
    yield "| --- | --- | --- |"
    for row in rows:
        if row.without:
            yield f"| {row.number} | {_cell(row.title)} | {_cell(row.without)} |"
    yield ""


def _plain(
    title: str, kind: Kind, cases: Sequence[Case], outcomes: Mapping[str, Outcome]
) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| case | target | expected | seen | why |"
    yield "| --- | --- | --- | --- | --- |"
    for case in cases:
        if case.expectation.kind is kind:
            yield f"| {_columns(case, outcomes)} |"
    yield ""


def _columns(case: Case, outcomes: Mapping[str, Outcome]) -> str:
    expected = case.expectation
    told = f"{expected.verdict.value} ({expected.stage.value})"
    cells = (
        f"`{case.name}`",
        case.candidate.target,
        told,
        _seen(case, outcomes.get(case.name)),
        _cell(expected.why),
    )
    return " | ".join(cells)


def _seen(case: Case, outcome: Outcome | None) -> str:
    if outcome is None:
        return NOT_RUN
    finding = finding_of(case.expectation, outcome)
    where = f"{outcome.device}, {outcome.date}" if outcome.device else outcome.date
    if finding is Finding.FAULT or outcome.verdict is None:
        return f"{finding.value} ({where})"
    stage = outcome.stage.value if outcome.stage else ""
    facts = f", {outcome.target_instructions.value}" if outcome.target_instructions else ""
    tier = f" ({outcome.tier.value})" if outcome.tier and facts else ""
    return f"**{finding.value}**: {outcome.verdict.value} in {stage}{facts}{tier} ({where})"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
