"""Turns of somebody else's runs, from a CSV file to checked rows or to all that is wrong.

Columns  run, model, arch, definition, workload, trajectory, turn, correctness, speedup,
         reasoning_tokens; one line a turn, `turn` from 0, `speedup` 0 where it is not correct.
Not covered: whether the numbers are true. They are shown as self-reported and say so.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evaluator.records.verdicts import Verdict
from leaderboard.services.source_text import text_error

COLUMNS = (
    "run",
    "model",
    "arch",
    "definition",
    "workload",
    "trajectory",
    "turn",
    "correctness",
    "speedup",
    "reasoning_tokens",
)
TARGET_OF_ARCH = {"hopper": "h100", "blackwell": "b200"}
"""PTXBench measured on these; an H200 has a board of its own."""

VERDICT_OF_LABEL = {
    "Correct": Verdict.PASSED,
    "Compilation error": Verdict.COMPILE_ERROR,
    "Runtime error": Verdict.RUNTIME_ERROR,
    "Numerical error": Verdict.INCORRECT_NUMERICAL,
    "Kernel Execution Timeout": Verdict.TIMEOUT,
    "Profiling Service Timeout": Verdict.TIMEOUT,
    "Sanitize Timeout": Verdict.TIMEOUT,
    "Other error": Verdict.RUNTIME_ERROR,
    "Extraction error": None,
}
"""None: the answer held no kernel."""

MAX_BYTES = 256 << 20
MAX_ROWS = 2_000_000
MAX_TURNS = 32
MAX_SPEEDUP = 1000.0
MAX_TOKENS = 10_000_000
MAX_CHARACTERS = 100
MOST_ERRORS = 50
CHUNK_BYTES = 1 << 20

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowError:
    """`line` as an editor counts it, from 1 with the header."""

    line: int
    column: str
    seen: str
    limit: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.column}: {self.seen!r}; {self.limit}"


class ImportRefused(ValueError):
    """A file of which nothing was taken in; the first MOST_ERRORS of what is wrong."""

    def __init__(self, errors: Sequence[RowError]) -> None:
        self.errors = tuple(errors[:MOST_ERRORS])
        super().__init__("\n".join(str(error) for error in self.errors))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTurn:
    """A line; `number` from 1, `speedup` only where it is correct."""

    line: int
    run: str
    model: str
    target: str
    problem: str
    trajectory: str
    number: int
    label: str
    speedup: float | None
    reasoning_tokens: int

    @property
    def verdict(self) -> Verdict | None:
        return VERDICT_OF_LABEL[self.label]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the site has: targets by problem. `spared`: runs whose problem may be another one."""

    problems: Mapping[str, Sequence[str]]
    spared: Collection[str] = frozenset()


def read_turns(path: Path, offer: Offer) -> list[ReportedTurn]:
    """Every line, checked. Raises ImportRefused, OSError."""
    errors: list[RowError] = []
    turns = [turn for turn in _turns(_text(path), offer, errors) if turn is not None]
    if not errors:
        errors.extend(_run_errors(turns))
        errors.extend(_order_errors(turns))
    if not errors and not turns:
        errors.append(RowError(line=2, column="run", seen="", limit="the file holds no turn"))
    if errors:
        raise ImportRefused(sorted(errors, key=lambda error: error.line))
    return turns


def _text(path: Path) -> str:
    """The whole file, unpacked if its name ends in .gz, and no more than MAX_BYTES of it."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            parts, size = [], 0
            while chunk := file.read(CHUNK_BYTES):
                size += len(chunk)
                if size > MAX_BYTES:
                    limit = f"at most {MAX_BYTES} bytes unpacked; split the file by run"
                    raise _refused(1, "file", f"more than {MAX_BYTES} bytes", limit)
                parts.append(chunk)
        text = b"".join(parts).decode("utf-8-sig")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _refused(1, "file", str(error), "expected a gzip file, as its name says") from error
    except UnicodeDecodeError as error:
        seen = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise _refused(1, "file", seen, "expected UTF-8") from error
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise _refused(line, "file", "a NUL character", "expected text")
    return text


def _refused(line: int, column: str, seen: str, limit: str) -> ImportRefused:
    return ImportRefused([RowError(line=line, column=column, seen=seen, limit=limit)])


def _turns(text: str, offer: Offer, errors: list[RowError]) -> Iterator[ReportedTurn | None]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        _check_header(header)
        for count, values in enumerate(reader, 1):
            if len(errors) >= MOST_ERRORS:
                return
            if count > MAX_ROWS:
                limit = f"at most {MAX_ROWS} turns; split the file by run"
                raise _refused(reader.line_num, "file", "more turns", limit)
            yield _turn(dict(zip(header, values, strict=False)), reader.line_num, offer, errors)
    except csv.Error as error:
        raise _refused(reader.line_num, "file", str(error), "expected CSV") from error


def _check_header(header: list[str]) -> None:
    if sorted(header) != sorted(COLUMNS):
        limit = f"expected exactly the columns {', '.join(COLUMNS)}"
        raise _refused(1, "header", ", ".join(header)[:300], limit)


class _Bad(ValueError):
    """A value that its column cannot hold; says what it can."""


def _turn(
    row: dict[str, str], line: int, offer: Offer, errors: list[RowError]
) -> ReportedTurn | None:
    """The turn of a line; None, with its errors noted, where a value is refused."""
    before = len(errors)

    def take(column: str, read: Callable[[str], ValueT]) -> ValueT | None:
        text = row.get(column)
        try:
            if text is None:
                raise _Bad("the line has too few values")
            return read(text)
        except _Bad as bad:
            seen = (text or "")[:MAX_CHARACTERS]
            errors.append(RowError(line=line, column=column, seen=seen, limit=str(bad)))
            return None

    target = take("arch", lambda text: TARGET_OF_ARCH[_one_of(text, TARGET_OF_ARCH)])
    label = take("correctness", lambda text: _one_of(text, VERDICT_OF_LABEL))
    run = take("run", _name)
    found = {
        "run": run,
        "model": take("model", _name),
        "target": target,
        "problem": take("definition", lambda text: _problem(text, target, run, offer)),
        "trajectory": take("trajectory", _name),
        "number": take("turn", lambda text: _whole(text, MAX_TURNS - 1) + 1),
        "label": label,
        "speedup": take("speedup", lambda text: _speedup(text, label)),
        "reasoning_tokens": take("reasoning_tokens", lambda text: _whole(text, MAX_TOKENS)),
    }
    return ReportedTurn(line=line, **found) if len(errors) == before else None  # type: ignore[arg-type]


def _name(text: str) -> str:
    if not text.strip() or len(text) > MAX_CHARACTERS or text_error(text):
        raise _Bad(f"expected 1 to {MAX_CHARACTERS} characters of text")
    return text


def _one_of(text: str, allowed: Mapping[str, object]) -> str:
    if text not in allowed:
        raise _Bad(f"expected one of: {', '.join(allowed)}")
    return text


def _problem(text: str, target: str | None, run: str | None, offer: Offer) -> str:
    if text not in offer.problems:
        if run in offer.spared:
            return _name(text)
        raise _Bad(f"no such problem here; known: {', '.join(offer.problems)}")
    if target and target not in offer.problems[text]:
        raise _Bad(f"not offered on {target}; it is on: {', '.join(offer.problems[text])}")
    return text


def _whole(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) <= most):
        raise _Bad(f"expected a whole number from 0 to {most}")
    return int(text)


def _speedup(text: str, label: str | None) -> float | None:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MAX_SPEEDUP:
        raise _Bad(f"expected a number from 0 to {MAX_SPEEDUP:g}")
    if label == "Correct" and value == 0:
        raise _Bad("a correct turn has a speedup above 0")
    if label not in ("Correct", None) and value != 0:
        raise _Bad(f"a turn that is {label!r} has speedup 0")
    return value or None


def _run_errors(turns: list[ReportedTurn]) -> Iterator[RowError]:
    """A run is one model on one problem and target."""
    first: dict[str, ReportedTurn] = {}
    for turn in turns:
        begun = first.setdefault(turn.run, turn)
        for column, name in (("model", "model"), ("arch", "target"), ("definition", "problem")):
            seen, expected = getattr(turn, name), getattr(begun, name)
            if seen != expected:
                limit = f"run {turn.run!r} began with {expected!r} in line {begun.line}"
                yield RowError(line=turn.line, column=column, seen=seen, limit=limit)


def _order_errors(turns: list[ReportedTurn]) -> Iterator[RowError]:
    """Each turn once, and none without the turn before it."""
    seen: dict[tuple[str, str], dict[int, int]] = {}
    for turn in turns:
        numbers = seen.setdefault((turn.run, turn.trajectory), {})
        if turn.number in numbers:
            limit = f"the turn is in line {numbers[turn.number]} already"
            text = f"{turn.run} {turn.trajectory} {turn.number - 1}"
            yield RowError(line=turn.line, column="turn", seen=text, limit=limit)
        numbers.setdefault(turn.number, turn.line)
    for (run, trajectory), numbers in seen.items():
        for number, line in sorted(numbers.items()):
            if number > 1 and number - 1 not in numbers:
                text = f"{run} {trajectory} {number - 1}"
                limit = f"turn {number - 2}, which it follows, is missing"
                yield RowError(line=line, column="turn", seen=text, limit=limit)
