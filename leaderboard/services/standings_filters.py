"""What a board may be filtered by, from an address's query to a checked value."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from evaluator import SCORING_VERSION
from evaluator.records.candidate import Language
from leaderboard.models import ModelStanding
from leaderboard.refusals import FieldError, InvalidFilter
from packs.pack import Level

Trust = ModelStanding.Trust
ValueT = TypeVar("ValueT")
MEASURED = (Trust.VERIFIED.value, Trust.REPRODUCED.value)
PINNED_P = 0.9
MOST_TURNS = 32
MOST_P = 1000.0
MOST_CHARACTERS = 60
YES, NO = ("1", "true", "yes"), ("", "0", "false", "no")
LEVELS = [f"{level.value}{more}" for level in Level for more in ("", "+guidance")]
LANGUAGES = [language.value for language in Language]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFilters:
    """`trust`: kinds shown together; None elsewhere: whatever there is.

    scoring_version  of measured rows; reported and published ones were not scored by us
    complete         only models with a final result on every problem of the board
    p, at_most, instructions    by which share, at how many turns, the table is ranked
    """

    trust: tuple[str, ...] = MEASURED
    language: str | None = None
    level: str | None = None
    scoring_version: str = SCORING_VERSION
    complete: bool = False
    p: float = PINNED_P
    at_most: int = 8
    instructions: bool = False

    @property
    def is_measured(self) -> bool:
        return set(self.trust) <= set(MEASURED)

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in FILTERS} | {"trust": list(self.trust)}


def read_filters(query: Mapping[str, str]) -> BoardFilters:
    """The filters of a query such as `trust=self-reported&level=schedule&p=0.75`.

    `trust` is one kind, `measured` (verified and reproduced, the default) or `all`. Names that are
    no filter are left alone. Raises InvalidFilter with everything that is wrong.
    """
    errors: list[FieldError] = []

    def take(name: str, read: Callable[[str], ValueT], default: ValueT) -> ValueT:
        text = query.get(name, "").strip()
        if not text:
            return default
        try:
            return read(text)
        except BadValue as bad:
            seen = text[:MOST_CHARACTERS]
            errors.append(
                FieldError(pointer=name, message=str(bad), seen=seen, allowed=bad.allowed)
            )
            return default

    found = BoardFilters(
        trust=take("trust", _trust, MEASURED),
        language=take("language", lambda text: _one_of("language", text, LANGUAGES), None),
        level=take("level", lambda text: _one_of("level", text, [*LEVELS, "none"]), None),
        scoring_version=take("scoring_version", _version, SCORING_VERSION),
        complete=take("complete", lambda text: _flag("complete", text), False),
        p=take("p", read_p, PINNED_P),
        at_most=take("at_most", _turns, 8),
        instructions=take("instructions", lambda text: _flag("instructions", text), False),
    )
    if errors:
        raise InvalidFilter(
            "; ".join(f"{one.pointer}: {one.message}" for one in errors), errors=errors
        )
    return found


class BadValue(ValueError):
    """A value that no filter can have; says what it may be."""

    def __init__(self, message: str, allowed: list[str] | None = None) -> None:
        super().__init__(message)
        self.allowed = allowed


def read_p(text: str) -> float:
    """A speedup from 0 to MOST_P. Raises BadValue."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_P:
        raise BadValue(f"{text[:40]!r} is no speedup; give a number from 0 to {MOST_P:g}")
    return value


def _turns(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= MOST_TURNS):
        raise BadValue(
            f"{text[:40]!r} is no turn limit; give a whole number from 1 to {MOST_TURNS}"
        )
    return int(text)


def _trust(text: str) -> tuple[str, ...]:
    groups = {"measured": MEASURED, "all": tuple(Trust.values)}
    chosen = groups.get(text) or (_one_of("trust", text, [*Trust.values, *groups]),)
    return tuple(chosen)


def _one_of(name: str, text: str, allowed: list[str]) -> str:
    if text not in allowed:
        known = ", ".join(allowed)
        raise BadValue(f"there is no {name} {text[:MOST_CHARACTERS]!r}; known: {known}", allowed)
    return text


def _version(text: str) -> str:
    if len(text) > 20 or not (text.isascii() and text.replace(".", "").replace("-", "").isalnum()):
        raise BadValue(f"{text[:40]!r} is no scoring version; the current one is {SCORING_VERSION}")
    return text


def _flag(name: str, text: str) -> bool:
    if text.lower() not in YES + NO:
        raise BadValue(f"{text[:40]!r} is neither yes nor no; give {name}=1 or leave it out")
    return text.lower() in YES


FILTERS = (
    "trust",
    "language",
    "level",
    "scoring_version",
    "complete",
    "p",
    "at_most",
    "instructions",
)
