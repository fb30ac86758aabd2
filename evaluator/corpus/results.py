"""Outcomes kept in a file per target: `tests/evidence/corpus/<target>.json`.

One outcome per case, the newest; an outcome of other sources than today's is not used.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluator.corpus.cases import ROOT, Case
from evaluator.corpus.outcomes import Outcome
from evaluator.records.base import Record

EVIDENCE = ROOT / "tests" / "evidence" / "corpus"


class Results(Record):
    format: str = "ptxboard.corpus/1"
    outcomes: dict[str, Outcome] = {}

    def of(self, case: Case) -> Outcome | None:
        """The outcome of exactly these sources, None where there is none."""
        seen = self.outcomes.get(case.name)
        return seen if seen is not None and seen.digest == case.candidate.digest else None

    def with_outcome(self, name: str, outcome: Outcome) -> "Results":
        return self.model_copy(update={"outcomes": {**self.outcomes, name: outcome}})

    def save(self, path: Path) -> None:
        """Written aside and moved, so that a run cut short leaves a whole file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True)
        aside = path.with_suffix(".part")
        aside.write_text(text + "\n", encoding="utf-8")
        aside.replace(path)


def load(path: Path) -> Results:
    """Empty where there is no such file."""
    return Results.from_json(path.read_bytes()) if path.exists() else Results()


def recorded(cases: Sequence[Case], folder: Path = EVIDENCE) -> Mapping[str, Outcome]:
    """What is on record of today's sources, by name of the case."""
    targets = {case.candidate.target for case in cases}
    results = {target: load(folder / f"{target}.json") for target in targets}
    found = ((case.name, results[case.candidate.target].of(case)) for case in cases)
    return {name: outcome for name, outcome in found if outcome is not None}
