"""Text from strangers, made safe to look at: no terminal codes, no invisible direction changes."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def without_ansi(text: str) -> str:
    """The text without terminal escape sequences."""
    return _ANSI.sub("", text)


def visible(text: str) -> str:
    """Control and direction characters spelled out, so that text cannot disguise itself."""
    return _HIDDEN.sub(lambda match: f"[U+{ord(match.group()):04X}]", text)


def log_text(text: str) -> str:
    """A log as it is shown: CRLF to LF, no escape sequences, hidden characters spelled out."""
    return visible(without_ansi(text).replace("\r\n", "\n").replace("\r", "\n"))
