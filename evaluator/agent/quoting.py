"""Text that a candidate or a problem's author wrote, made safe to stand in a message to a model."""

import re
from collections.abc import Iterable

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
RUNS = re.compile(r"`{3,}")
LINE_CHARACTERS = 300
CUT_NOTE_BYTES = 60


def cleaned(text: str) -> str:
    """Line ends as LF; no terminal codes, control, direction or invisible characters."""
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return HIDDEN.sub("", text)


def fenced(text: str, tag: str = "text") -> str:
    """A fenced block that its content cannot close: the fence is longer than any in the text."""
    longest = max((len(run) for run in RUNS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    body = text.rstrip("\n")
    return f"{fence}{tag}\n{body}\n{fence}"


def cut_lines(lines: Iterable[str], limit_bytes: int) -> str:
    """As many whole lines as fit, long ones shortened; the last line says how many are missing."""
    shown = [_shortened(line) for line in lines]
    sizes = [len(line.encode()) + 1 for line in shown]
    if sum(sizes) <= limit_bytes:
        return "\n".join(shown)
    kept, room = 0, limit_bytes - CUT_NOTE_BYTES
    while kept < len(shown) and sizes[kept] <= room:
        room -= sizes[kept]
        kept += 1
    return "\n".join([*shown[:kept], f"[cut: {kept} of {len(shown)} lines shown]"])


def _shortened(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    return f"{line[:LINE_CHARACTERS]} [cut: {len(line)} characters]"
