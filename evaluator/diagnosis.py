"""Which line of a compiler's log its author should read first, what to do, and where it belongs."""

import re

from evaluator.build import ENTRY_STEM
from evaluator.entry_unit import MARK

ERROR = re.compile(
    r"(?:^|[\s:,;)])(?:fatal )?error\b|\bfatal\b|undefined reference|multiple definition|ld: ",
    re.IGNORECASE,
)
LINK_CONTEXT = re.compile(r"\bld: .*: in function ")
SIGNATURE = re.compile(re.escape(MARK) + r'([^"\n]+)')
SEEN_COUNT = re.compile(r", seen (?:more than )?\d+$")
# ptxas calls its performance remarks "info" (C7508, C7510, ...); nvcc's 20044 changes a result.
REMARK = re.compile(r"\(C7\d{3}\) Potential Performance Loss: .*|warning #20044-D: .*")
REMARK_CHARACTERS = 300
HINTS = (
    (
        re.compile(r"Unresolved extern|separate compilation mode"),
        "files are compiled one by one and their device code is not linked (no -rdc): include "
        "the file that defines it",
    ),
    (
        re.compile(r"multiple definition"),
        "every source file is compiled and linked: name files that others include .cuh or .h",
    ),
)
FENCE = re.compile(r"^\s*(?:\d+ \|)?\s*```", re.MULTILINE)
FENCE_HINT = "the file holds a Markdown fence (```): send the code without it"

PTXAS_LINE = re.compile(r"^ptxas (?P<stem>\S+)\.ptx, line (?P<line>\d+);.*$", re.MULTILINE)
PLACE = re.compile(r"^\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)")
FILE = re.compile(r'^\s*\.file\s+(?P<file>\d+)\s+"(?P<path>[^"]+)"', re.MULTILINE)


def first_error(log: str) -> str:
    """The line to read first, with a hint where we know one; '' where none looks like an error."""
    line = _first_line(log)
    if line == "":
        return ""
    hint = next((text for pattern, text in HINTS if pattern.search(line)), "")
    if not hint and FENCE.search(log):
        hint = FENCE_HINT
    return f"{line}; {hint}" if hint else line


def _first_line(log: str) -> str:
    """Files come before the generated unit, so the author's own errors before our check."""
    errors = [line for line in log.splitlines() if _is_error(line)]
    if not errors:
        return next((line.strip()[:500] for line in log.splitlines() if ERROR.search(line)), "")
    asserted = SIGNATURE.search(log)
    if asserted and (ENTRY_STEM in errors[0] or MARK in errors[0]):
        return _about_entry(errors[0], asserted.group(1))
    return errors[0].strip()[:500]


def _is_error(line: str) -> bool:
    """A compiler's own line: neither the source that it quotes nor a warning nor context."""
    found = ERROR.search(line)
    if found is None or line[:1].isspace() or LINK_CONTEXT.search(line):
        return False
    return "warning" not in line[: found.start()].lower()


def _about_entry(line: str, asserted: str) -> str:
    """A wrong prototype in words; where it has none, what keeps the compiler from telling it."""
    if MARK in line:
        return SIGNATURE.search(line).group(1)  # type: ignore[union-attr]
    said = line.split("error:", 1)[-1].strip()[:200]
    return f"{SEEN_COUNT.sub('', asserted)}, exactly one function and no template; seen: {said}"


def remarks(log: str) -> tuple[str, ...]:
    """What compilers merely remark though it costs speed or changes results, each once."""
    found = (match.group(0)[:REMARK_CHARACTERS] for match in REMARK.finditer(log))
    return tuple(dict.fromkeys(found))


def units_to_locate(log: str) -> tuple[str, ...]:
    """Stems of the units whose PTX `ptxas` complains about by line."""
    return tuple(dict.fromkeys(match["stem"] for match in PTXAS_LINE.finditer(log)))


def with_places(log: str, stem: str, ptx: str) -> str:
    """ptxas' lines with the source line and the instruction that they are about."""
    files = {match["file"]: match["path"] for match in FILE.finditer(ptx)}
    lines = ptx.splitlines()

    def placed(match: re.Match[str]) -> str:
        number = int(match["line"])
        if match["stem"] != stem or not 0 < number <= len(lines):
            return match[0]
        before = (PLACE.match(line) for line in reversed(lines[:number]))
        place = next((found for found in before if found), None)
        where = f" at {files.get(place['file'], '?')}:{place['line']}" if place else ""
        return f"{match[0]}{where}: {lines[number - 1].strip()[:200]}"

    return PTXAS_LINE.sub(placed, log)
