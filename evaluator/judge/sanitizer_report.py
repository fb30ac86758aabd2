"""compute-sanitizer's text report in parts: the summary's count and the first fault."""

import re

from evaluator.records.evidence import SanitizerFault

# A second line of the summary counts what the print limit left out: that is no count of errors.
SUMMARY = re.compile(r"^========= ERROR SUMMARY: (\d+) errors?$", re.MULTILINE)
INTERNAL = "Internal Sanitizer Error"
# Whatever it is called: the tool's own lines are few, the kinds of faults grow with its versions.
FAULT = re.compile(
    r"^========= (?P<kind>(?!COMPUTE-SANITIZER|[A-Z]+ SUMMARY|Target application|Tracking)\S[^\n]*)"
    r"\n(?P<rest>(?:=========     [^\n]*\n)*)",
    re.MULTILINE,
)
# `at k(float *)+0x70 in kernel.cu:5`; before 12.3 `at 0x70 in kernel.cu:5:k(float *)`.
PLACE = re.compile(
    r"^=========     at (?:(?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>\S+):(?P<line>\d+))?"
    r"|0x[0-9a-f]+ in (?:(?P<old_file>[^\s:]+):(?P<old_line>\d+):)?(?P<old_kernel>.+))$",
    re.MULTILINE,
)
MAX_TEXT = 1500


def summary_count(report: str) -> int | None:
    """Errors by the tool's own last summary; None if it never came that far."""
    counts: list[str] = SUMMARY.findall(report)
    return int(counts[-1]) if counts else None


def is_internal(fault: SanitizerFault | None) -> bool:
    """Whether it is the tool's own failure, and none of the program that it watched."""
    return fault is not None and INTERNAL in fault.kind


def first_fault(report: str) -> SanitizerFault | None:
    found = FAULT.search(report)
    if found is None:
        return None
    place = PLACE.search(found["rest"])
    kernel = (place["kernel"] or place["old_kernel"]) if place else None
    file = (place["file"] or place["old_file"]) if place else None
    line = (place["line"] or place["old_line"]) if place else None
    return SanitizerFault(
        kind=found["kind"].strip()[:200],
        kernel=kernel[:500] if kernel else None,
        source_file=_as_submitted(file) if file else None,
        source_line=int(line) if line else None,
        text=found[0][:MAX_TEXT],
    )


def _as_submitted(path: str) -> str:
    return path.removeprefix("/build/src/").removeprefix("/build/")[:200]
