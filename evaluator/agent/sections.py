"""Parts of a message to a model, put together within a limit: the first ones are the safest."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.agent.quoting import RUNS, cleaned, cut_lines, fenced

LEFT_OUT_BYTES = 120
FEWEST_BYTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`lines` are ours: words, numbers and names of enumerations; `quote` is anybody's text.

    most_bytes  of the whole section, heading and fence included
    """

    title: str
    lines: tuple[str, ...] = ()
    quote: str = ""
    most_bytes: int = 2000

    def render(self, room_bytes: int) -> str:
        """At most `room_bytes`, if that is FEWEST_BYTES or more; lines before the quote."""
        room = min(self.most_bytes, room_bytes)
        heading = f"## {self.title}\n" if self.title else ""
        room -= len(heading.encode()) + 2
        parts = [heading] if heading else []
        if self.lines:
            parts.append(cut_lines(self.lines, room) + "\n")
            room -= len(parts[-1].encode()) + 1
        quote = _quoted(self.quote, room)
        return "\n".join([*parts, quote + "\n"] if quote else parts)


def _quoted(text: str, room_bytes: int) -> str:
    """'' where not even the fences fit."""
    text = cleaned(text).strip("\n")
    if not text.strip():
        return ""
    body = cut_lines(text.split("\n"), room_bytes)
    longest = max((len(run) for run in RUNS.findall(body)), default=2)
    room_bytes -= 2 * (longest + 1) + len("text") + 3
    if room_bytes < FEWEST_BYTES // 2:
        return ""
    return fenced(cut_lines(text.split("\n"), room_bytes))


def compose(head: str, sections: Sequence[Section], tail: str, *, limit_bytes: int) -> str:
    """Head, as many sections as fit, and tail; it names the sections that did not fit."""
    parts, left_out = [head], []
    room = limit_bytes - len(f"{head}\n{tail}\n".encode()) - LEFT_OUT_BYTES
    for section in sections:
        text = section.render(room) if room >= FEWEST_BYTES else ""
        size = len(text.encode()) + 1
        if not text or size > room:
            left_out.append(section.title)
            continue
        parts.append(text)
        room -= size
    if left_out:
        parts.append(f"[{len(left_out)} more sections did not fit]\n")
    return "\n".join([*parts, tail]) + "\n"
