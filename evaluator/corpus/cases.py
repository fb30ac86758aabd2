"""Folders of `tests/candidates` as cases: what is submitted, and what must come of it.

Raises InvalidCase with the folder's name for an `expect.toml` that is not usable.
"""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from evaluator.records.base import Record
from evaluator.records.candidate import Binding, Candidate, Language, Source
from evaluator.records.summary import LANE_OF
from evaluator.records.verdicts import InstructionStatus, Lane, Stage, Tier, Verdict

EXPECTATION = "expect.toml"
ENTRY_STEM = "kernel"
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "candidates"
# Where a case stops says what it costs; a hang costs its whole limit.
COST_OF_STAGE = {stage: number for number, stage in enumerate(Stage)}
HANGS, LARGE = 200, 100


class InvalidCase(ValueError):
    """A folder whose expectation cannot be read; the text names it."""


class Kind(StrEnum):
    CHEAT = "cheat"
    HONEST = "honest"
    MISTAKE = "mistake"


class Expectation(Record):
    """What `expect.toml` says; `hole` is what a cheat that passes gains, if anything."""

    kind: Kind
    problem: str
    target: str
    language: Language
    binding: Binding
    stage: Stage
    verdict: Verdict
    message: str
    why: str
    cheat_row: int | None = None
    also_stages: tuple[Stage, ...] = ()
    also_verdicts: tuple[Verdict, ...] = ()
    target_instructions: InstructionStatus | None = None
    also_target_instructions: tuple[InstructionStatus, ...] = ()
    tier: Tier | None = None
    hole: str = ""

    @property
    def verdicts(self) -> frozenset[Verdict]:
        return frozenset((self.verdict, *self.also_verdicts))

    @property
    def stages(self) -> frozenset[Stage]:
        return frozenset((self.stage, *self.also_stages))

    @property
    def ends_in_the_build(self) -> bool:
        """Whether it is refused where no GPU is needed."""
        return self.verdict is not Verdict.PASSED and LANE_OF[self.stage] is Lane.BUILD


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    expectation: Expectation
    candidate: Candidate

    @property
    def cost(self) -> tuple[int, str]:
        """Quick ones first, so that a time limit leaves out the long ones."""
        expected = self.expectation
        cost = COST_OF_STAGE[expected.stage]
        cost += HANGS if expected.verdict is Verdict.TIMEOUT else 0
        cost += LARGE if "n7168" in expected.problem else 0
        return cost, self.name


def load_cases(
    folder: Path = FOLDER, *, target: str | None = None, names: Collection[str] = ()
) -> tuple[Case, ...]:
    """All cases in running order; only those of a target or of these names where given.

    Raises InvalidCase, also for a name that is no folder.
    """
    if not folder.is_dir():
        raise InvalidCase(f"no corpus at {folder}: run this in a checkout of the project")
    found = sorted(path.parent.name for path in folder.glob(f"*/{EXPECTATION}"))
    unknown = sorted(set(names) - set(found))
    if unknown:
        raise InvalidCase(f"no case named {', '.join(unknown)} in {folder}")
    cases = [load_case(folder / name) for name in found if not names or name in names]
    chosen = [case for case in cases if target in (None, case.expectation.target)]
    return tuple(sorted(chosen, key=lambda case: case.cost))


def load_case(folder: Path) -> Case:
    try:
        expectation = Expectation.model_validate(
            tomllib.loads((folder / EXPECTATION).read_text(encoding="utf-8"))
        )
        candidate = _candidate(folder, expectation)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise InvalidCase(f"{folder.name}: {'; '.join(faults)}") from error
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidCase(f"{folder.name}: {error}") from error
    return Case(name=folder.name, expectation=expectation, candidate=candidate)


def _candidate(folder: Path, expectation: Expectation) -> Candidate:
    """Every file of the folder but the expectation, the entry file first."""
    entry = next((path for path in sorted(folder.iterdir()) if path.stem == ENTRY_STEM), None)
    if entry is None:
        raise InvalidCase(f"{folder.name}: no file {ENTRY_STEM}.* in it")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    others = [path for path in files if path not in (entry, folder / EXPECTATION)]
    return Candidate(
        problem=expectation.problem,
        target=expectation.target,
        language=expectation.language,
        binding=expectation.binding,
        sources=tuple(
            Source(path=path.relative_to(folder).as_posix(), content=path.read_bytes().decode())
            for path in (entry, *others)
        ),
        entry_file=entry.name,
    )
