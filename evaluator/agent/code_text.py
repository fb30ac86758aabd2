"""Just enough of C++'s and Python's lexical rules to tell code from comments and strings.

Compilers decide; this only serves to find out which block of an answer is meant. What never ends
runs to the end of the text, so that a pass over any text is linear.
"""

import re
from collections import deque
from enum import StrEnum


class Syntax(StrEnum):
    C = "c"
    PYTHON = "python"


TOKENS = {
    Syntax.C: re.compile(
        r"//[^\n]*"
        r"|/\*(?:.*?\*/|(?P<comment>.*))"
        r'|R"(?P<mark>[^()\\\s"]{0,16})\((?:.*?\)(?P=mark)"|(?P<raw>.*))'
        r'|"(?:[^"\\\n]|\\.)*"'
        r"|'(?:[^'\\\n]|\\.)*'",
        re.DOTALL,
    ),
    Syntax.PYTHON: re.compile(
        r"#[^\n]*"
        r'|"""(?:(?:[^\\]|\\.)*?"""|(?P<comment>.*))'
        r"|'''(?:(?:[^\\]|\\.)*?'''|(?P<raw>.*))"
        r'|"(?:[^"\\\n]|\\.)*"'
        r"|'(?:[^'\\\n]|\\.)*'",
        re.DOTALL,
    ),
}
LINKAGE = '"C"'


def ender_of_open(text: str, start: int, end: int, syntax: Syntax) -> str | None:
    """What ends the comment or the string of several lines that is open at `end`; None if none is.

    start  where code begins that is in neither
    """
    tokens = deque(TOKENS[syntax].finditer(text, start, end), maxlen=1)
    last = tokens[0] if tokens else None
    if last is None or (last["comment"] is None and last["raw"] is None):
        return None
    if syntax is Syntax.PYTHON:
        return '"""' if last["raw"] is None else "'''"
    return "*/" if last["raw"] is None else f'){last["mark"]}"'


def code_only(text: str, syntax: Syntax) -> str:
    """The text with comments as spaces and strings empty; the linkage "C" stays."""

    def blank(token: re.Match[str]) -> str:
        if token[0] == LINKAGE:
            return LINKAGE
        return " " if token[0][0] in "/#" else '""'

    return TOKENS[syntax].sub(blank, text)
