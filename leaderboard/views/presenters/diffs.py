"""What changed between two sources, worked out on the server and shown as a unified diff."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from leaderboard.views.presenters.text import visible

CONTEXT_LINES = 4
MAX_LINES = 4000
"""Of either source: matching takes the square of it where nothing is alike."""
MAX_LINE_CHARACTERS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """`sign` is "+", "-", " ", or "@" for lines that are left out; numbers count from 1."""

    sign: str
    text: str
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """`reason` says why there are no lines where there are none."""

    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    reason: str = ""


def diff(before: str, after: str) -> Diff:
    """Lines that differ, with CONTEXT_LINES around them."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return Diff(lines=(), added=0, removed=0, reason="The code is the same as before.")
    if (longest := max(len(old), len(new))) > MAX_LINES:
        reason = f"{longest} lines are too many to compare here, the limit is {MAX_LINES}."
        return Diff(lines=(), added=0, removed=0, reason=reason)
    lines = tuple(_lines(old, new))
    return Diff(
        lines=lines,
        added=sum(line.sign == "+" for line in lines),
        removed=sum(line.sign == "-" for line in lines),
    )


def _lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    end = 0
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES):
        if skipped := group[0][1] - end:
            yield DiffLine(sign="@", text=f"{skipped} equal line{'s' if skipped > 1 else ''}")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from _equal(old, i1, i2, j1)
                continue
            for number in range(i1, i2):
                yield DiffLine(sign="-", text=_shown(old[number]), before=number + 1)
            for number in range(j1, j2):
                yield DiffLine(sign="+", text=_shown(new[number]), after=number + 1)
        end = group[-1][2]
    if skipped := len(old) - end:
        yield DiffLine(sign="@", text=f"{skipped} equal line{'s' if skipped > 1 else ''}")


def _equal(old: list[str], start: int, end: int, after: int) -> Iterator[DiffLine]:
    for step, number in enumerate(range(start, end), 1):
        yield DiffLine(sign=" ", text=_shown(old[number]), before=number + 1, after=after + step)


def _shown(line: str) -> str:
    text = visible(line)
    return text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]}…"
