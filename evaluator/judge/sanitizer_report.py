"""compute-sanitizer's text report in parts: the summary's count and the first fault."""

import re

from evaluator.records.evidence import SanitizerFault

SUMMARY = re.compile(r"^========= ERROR SUMMARY: (\d+) errors?\b", re.MULTILINE)
FAULT = re.compile(
    r"^========= (?P<kind>(?:Invalid|Uninitialized|Misaligned|Barrier|Out-of-range|Potential|Error:"
    r"|Warning: Race|Leaked)[^\n]*)\n(?P<rest>(?:=========     [^\n]*\n)*)",
    re.MULTILINE,
)
PLACE = re.compile(
    r"^=========     at (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>\S+):(?P<line>\d+))?$", re.M
)
MAX_TEXT = 1500


def summary_count(report: str) -> int | None:
    """Errors by the tool's own last summary; None if it never came that far."""
    counts: list[str] = SUMMARY.findall(report)
    return int(counts[-1]) if counts else None


def first_fault(report: str) -> SanitizerFault | None:
    found = FAULT.search(report)
    if found is None:
        return None
    place = PLACE.search(found["rest"])
    file = place["file"] if place else None
    return SanitizerFault(
        kind=found["kind"].strip()[:200],
        kernel=place["kernel"][:500] if place else None,
        source_file=_as_submitted(file) if file else None,
        source_line=int(place["line"]) if place and place["line"] else None,
        text=found[0][:MAX_TEXT],
    )


def _as_submitted(path: str) -> str:
    return path.removeprefix("/build/src/").removeprefix("/build/")[:200]
