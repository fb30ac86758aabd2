"""Just enough of C++'s and Python's lexical rules to tell code from comments and strings.

Compilers decide; this only serves to find out which block of an answer is meant. What never ends
runs to the end of the text, so that a pass over any text is linear.
"""

import re
from collections.abc import Iterator
from enum import StrEnum


class Syntax(StrEnum):
    C = "c"
    PYTHON = "python"


TOKENS = {
    Syntax.C: re.compile(
        r"//[^\n]*"
        r"|(?P<long>/\*(?:.*?\*/|.*))"
        r'|(?P<raw>R"(?P<mark>[^()\\\s"]{0,16})\((?:.*?\)(?P=mark)"|.*))'
        r'|"(?:[^"\\\n]|\\.)*"'
        r"|'(?:[^'\\\n]|\\.)*'",
        re.DOTALL,
    ),
    Syntax.PYTHON: re.compile(
        r"#[^\n]*"
        r'|(?P<long>"""(?:(?:[^\\]|\\.)*?"""|.*))'
        r"|(?P<raw>'''(?:(?:[^\\]|\\.)*?'''|.*))"
        r'|"(?:[^"\\\n]|\\.)*"'
        r"|'(?:[^'\\\n]|\\.)*'",
        re.DOTALL,
    ),
}
LINKAGE = '"C"'


def open_spans(text: str, start: int, syntax: Syntax) -> Iterator[tuple[int, int]]:
    """Where comments and strings that may hold line ends begin and end, one after the other."""
    for token in TOKENS[syntax].finditer(text, start):
        if token["long"] or token["raw"]:
            yield token.span()


def code_only(text: str, syntax: Syntax) -> str:
    """The text with comments as spaces and strings empty; the linkage "C" stays."""

    def blank(token: re.Match[str]) -> str:
        if token[0] == LINKAGE:
            return LINKAGE
        return " " if token[0][0] in "/#" else '""'

    return TOKENS[syntax].sub(blank, text)
