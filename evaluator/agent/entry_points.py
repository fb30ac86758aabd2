"""Whether a text defines the entry point, as far as the text alone can tell."""

import re
from enum import IntEnum

from evaluator.agent.code_text import Syntax, code_only

LINKAGE = re.compile(r'\bextern\s*"C"')
KERNEL = re.compile(r"\b__global__\b")
TYPED_BEFORE = re.compile(r"(?:[A-Za-z_]\w*|[>*&\])])\s*$")
NO_TYPE = re.compile(r"\b(?:return|else|do|co_await|throw|case)\s*$")
BODY = re.compile(r"\s*(?:noexcept\s*)?(?P<next>[{;]|try\b)")
PLACES_TRIED = 200
PARAMETER_CHARACTERS = 4000
CONTEXT_CHARACTERS = 100


class EntryPoint(IntEnum):
    """What a text has of the entry point, the better the higher.

    UNEXPORTED: defined, but other programs cannot find it under its name.
    """

    ABSENT = 0
    UNEXPORTED = 1
    DECLARED = 2
    DEFINED = 3


def entry_point_in(code: str, syntax: Syntax, name: str) -> EntryPoint:
    """Comments and strings do not count; templates and macros are not looked through."""
    text = code_only(code, syntax)
    return _in_python(text, name) if syntax is Syntax.PYTHON else _in_c(text, name)


def has_kernel(code: str) -> bool:
    return KERNEL.search(code_only(code, Syntax.C)) is not None


def _in_python(text: str, name: str) -> EntryPoint:
    word = re.escape(name)
    if re.search(rf"^(?:def[ \t]+{word}[ \t]*\(|{word}[ \t]*=(?!=))", text, re.MULTILINE):
        return EntryPoint.DEFINED
    if re.search(rf"^[ \t]+def[ \t]+{word}[ \t]*\(", text, re.MULTILINE):
        return EntryPoint.UNEXPORTED
    return EntryPoint.ABSENT


def _in_c(text: str, name: str) -> EntryPoint:
    word = re.escape(name)
    if re.search(rf"\bTVM_FFI_DLL_EXPORT_TYPED_FUNC\s*\(\s*{word}\s*,", text):
        return EntryPoint.DEFINED
    uses = list(re.finditer(rf"(?<!\w)(?<!->){word}\s*\(", text))[-PLACES_TRIED:]
    followers = {_follower(text, use) for use in uses}
    exported = LINKAGE.search(text) is not None
    if "{" in followers or "try" in followers:
        return EntryPoint.DEFINED if exported else EntryPoint.UNEXPORTED
    return EntryPoint.DECLARED if exported and ";" in followers else EntryPoint.ABSENT


def _follower(text: str, use: re.Match[str]) -> str:
    """What follows the parameters where a type stands before the name; '' for a call."""
    before = text[max(0, use.start() - CONTEXT_CHARACTERS) : use.start()]
    if not TYPED_BEFORE.search(before) or NO_TYPE.search(before):
        return ""
    end = _closing_parenthesis(text, use.end())
    found = BODY.match(text, end) if end is not None else None
    return found["next"] if found else ""


def _closing_parenthesis(text: str, start: int) -> int | None:
    """Just behind the parenthesis that closes the one before `start`."""
    depth = 1
    for found in re.finditer(r"[()]", text[start : start + PARAMETER_CHARACTERS]):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return start + found.end()
    return None
