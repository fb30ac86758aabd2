"""What a file of turns does not say of its runs: conditions, and which of them a board counts."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from evaluator.records.base import Record

PUBLISHED_FOLDER = Path(__file__).resolve().parents[1] / "published"
PTXBENCH_NOTES = PUBLISHED_FOLDER / "ptxbench_notes.json"


class RunNote(Record):
    """Of one run.

    unranked                  why no board counts it
    levels                    knowledge level by place of the trajectory, where a run has several
    left_out_without_problem  why the run may be left out where the site lacks its problem
    """

    unranked: str = ""
    levels: dict[str, tuple[int, ...]] = {}
    left_out_without_problem: str = ""


class Notes(Record):
    """Of one file; `runs` by name."""

    source: str
    level: str
    scoring_version: str = Field(max_length=20)
    target_speedup: Annotated[float, Field(gt=0, le=1000)]
    turns: Annotated[int, Field(ge=1, le=32)]
    trajectories_per_variant: Annotated[int, Field(ge=1, le=1000)]
    why_in_fours: str = ""
    runs: dict[str, RunNote] = {}

    def of(self, run: str) -> RunNote:
        return self.runs.get(run) or RunNote()

    def level_of(self, run: str, place: int) -> str:
        """Of the trajectory at this place of its run, from 0."""
        levels = self.of(run).levels
        return next((name for name, places in levels.items() if place in places), self.level)


def read_notes(path: Path = PTXBENCH_NOTES) -> Notes:
    """Raises ValueError, OSError."""
    try:
        return Notes.from_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path.name}: {error}") from error
