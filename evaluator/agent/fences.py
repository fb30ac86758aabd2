"""Fenced code blocks of an answer in Markdown, in every dialect that models write.

Backticks or tildes, three or more; indented or in a list, whose indentation is taken off the code;
behind or before an XML-like tag on the same line; a language, attributes or a file name behind the
fence. A line that closes a block by Markdown's rules does not close it here while a comment or a
string of the code is open, so that a kernel may quote a fence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.agent.code_text import Syntax, ender_of_open

TAGS = r"(?:<[A-Za-z][\w.:-]*(?:[ \t][^<>\n]*)?>[ \t]*)*"
OPENING = re.compile(
    rf"^(?P<indent>[ \t]*(?:(?:[-*+]|\d{{1,3}}[.)])[ \t]+)?){TAGS}"
    r"(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)$",
    re.MULTILINE,
)
CLOSING = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?:</[A-Za-z][\w.:-]*>[ \t]*)*$", re.MULTILINE
)
SUFFIXES = "cuh|cu|cpp|cxx|cc|hpp|hh|h|c|inl|py"
FILE_NAME = re.compile(rf"(?<![\w./-])[\w./-]*\w\.(?:{SUFFIXES})(?![\w./-])")
WORD = re.compile(r"[A-Za-z][\w+#.-]*")
BARE_LINE = re.compile(
    rf"(?:[\w./-]*\w\.(?:{SUFFIXES})|cuda|cu|cpp|c\+\+|python|py|triton)[ \t]*", re.IGNORECASE
)
C_TAGS = frozenset(
    {"cuda", "cu", "cuh", "ptx", "cpp", "c++", "cxx", "cc", "c", "h", "hpp", "hh", "cuda-c++"}
    | {"cuda-cpp", *(f"c++{year}" for year in (11, 14, 17, 20, 23))}
)
PYTHON_TAGS = frozenset({"python", "python3", "py", "py3", "triton"})
TAB = 4
MOST_UNENDING = 4
"""Blocks with a comment that never ends: each costs a pass over the rest of the text."""
TITLE_CHARACTERS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`tag` is the language in lower case, '' without one; `line` is the fence's, from 1."""

    number: int
    line: int
    tag: str
    file_name: str | None
    code: str
    closed: bool


def find_blocks(text: str, syntax: Syntax) -> tuple[Block, ...]:
    """The fenced blocks of a text whose line ends are LF, in their order.

    syntax  of blocks without a language, whose comments and strings are then looked into
    """
    return tuple(_blocks(text, syntax))


def _blocks(text: str, syntax: Syntax) -> Iterator[Block]:
    position, number = 0, 0
    line, counted = 1, 0
    patience = MOST_UNENDING
    while opening := OPENING.search(text, position):
        number += 1
        line += text.count("\n", counted, opening.start())
        counted = opening.start()
        start = min(opening.end() + 1, len(text))
        inside = _syntax(opening["info"], syntax) if patience else None
        closing, ends = _closing(text, start, opening["fence"], inside)
        patience -= 0 if ends else 1
        body = text[start : closing.start() if closing else len(text)]
        yield _block(opening, body, number=number, line=line, closed=closing is not None)
        if closing is None:
            return
        position = closing.end()


def _syntax(info: str, default: Syntax) -> Syntax | None:
    """None for shells and texts, where `/*` or a quote opens nothing."""
    tag, _ = _tag_and_file(info)
    if tag in C_TAGS:
        return Syntax.C
    return Syntax.PYTHON if tag in PYTHON_TAGS else (None if tag else default)


def _closing(
    text: str, start: int, fence: str, syntax: Syntax | None
) -> tuple[re.Match[str] | None, bool]:
    """The line that closes the block, and whether the comments and strings in it end.

    Where they never do, it is the first line that closes by Markdown's rules.
    """
    first: re.Match[str] | None = None
    for found in CLOSING.finditer(text, start):
        if found["fence"][0] != fence[0] or len(found["fence"]) < len(fence):
            continue
        first = first or found
        if found.start() < start:
            continue
        ender = ender_of_open(text, start, found.start(), syntax) if syntax else None
        if ender is None:
            return found, True
        start = text.find(ender, found.start()) + len(ender)
        if start < len(ender):
            return first, False
    return None, True


def _block(opening: re.Match[str], body: str, *, number: int, line: int, closed: bool) -> Block:
    code = _without_indent(body, len(opening["indent"].expandtabs(TAB)))
    first, _, rest = code.partition("\n")
    named = first if BARE_LINE.fullmatch(first) else ""
    tag, file_name = _tag_and_file(opening["info"])
    named_tag, named_file = _tag_and_file(named)
    return Block(
        number=number,
        line=line,
        tag=tag or named_tag,
        file_name=file_name or named_file or _file_in(opening.string, opening.start(), first),
        code=rest if named else code,
        closed=closed,
    )


def _without_indent(body: str, width: int) -> str:
    """At most `width` columns less in each line; tabs stand at multiples of TAB columns."""
    if not width:
        return body
    return "\n".join(_dedented(line, width) for line in body.split("\n"))


def _dedented(line: str, width: int) -> str:
    column = 0
    for place, character in enumerate(line):
        if column >= width or character not in " \t":
            return " " * (column - width) + line[place:]
        column += 1 if character == " " else TAB - column % TAB
    return ""


def _tag_and_file(info: str) -> tuple[str, str | None]:
    """From `cuda`, `c++ title="k.cu"`, `{.cpp}`, `cpp:kernel.cu` or `kernel.cu`."""
    info = info[:TITLE_CHARACTERS].strip()
    file_name = FILE_NAME.search(info)
    word = WORD.search(info)
    tag = word[0].lower().rstrip(".") if word else ""
    if file_name and word and word.start() == file_name.start():
        tag = file_name[0].rsplit(".", 1)[-1]
    tag = tag.removeprefix("language-").removeprefix("lang-")
    return tag, file_name[0] if file_name else None


def _file_in(text: str, start: int, first_line: str) -> str | None:
    """A name in the block's first comment, or in the short line above the fence."""
    above = text[max(0, start - TITLE_CHARACTERS) : start].rstrip().rsplit("\n", 1)[-1]
    comment = first_line if re.match(r"[ \t]*(?://|#(?!include)|/\*)", first_line) else ""
    for line in (comment, above):
        names: list[str] = FILE_NAME.findall(line) if len(line) < TITLE_CHARACTERS else []
        if len(set(names)) == 1:
            return names[0]
    return None
