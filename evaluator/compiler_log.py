"""What a compiler said: cleaned of paths, cut to the useful lines, and read for facts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.diagnosis import ERROR
from evaluator.records.evidence import KernelResources

LOG_BYTES = 64 << 10
LINE_CHARACTERS = 2000
RESOURCES = re.compile(r"^ptxas |bytes stack frame")
TEMPORARY = re.compile(r"(?:/tmp/)?\btmpxft_[0-9a-f]+_[0-9a-f]+-\d+_|/tmp/cc\w{6}\b\.?")
OWN_PREFIX = re.compile(r"(?<![\w/.])(?:\./)+(?=[\w.])")
MEMORY_WORDS = re.compile(
    r"out of memory|virtual memory exhausted|[Cc]annot allocate memory|std::bad_alloc|"
    r"died due to signal 9|Killed signal|memory allocation fail",
)
TIME_WORDS = re.compile(r"died due to signal 24|CPU time limit exceeded")
# A line of an author's file, or quoted from it: its words are not the compiler's.
QUOTED = re.compile(r"\s|[^\s:(]+(?:\(\d+\)|:\d+:)")
KERNEL = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanLog:
    text: str
    truncated: bool
    byte_count: int


def clean(
    output: str, *, already_truncated: bool, folders: Sequence[Path], workspace: Path
) -> CleanLog:
    """Without paths of this machine, at most 64 KiB; error lines go first when it must be cut.

    folders    where tools and headers lie, replaced by their last name
    workspace  as the compiler saw it; names below it become relative
    """
    text = output.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    for place in (f"{workspace}/src/", f"{workspace}/", "../src/", "../"):
        text = text.replace(place, "")
    for folder in sorted(folders, key=lambda path: -len(str(path))):
        if folder != Path("/usr"):
            text = text.replace(f"{folder}/", f"<{folder.name}>/")
    text = OWN_PREFIX.sub("", without_temporaries(text))
    byte_count = len(output.encode())
    kept = _cut(text)
    return CleanLog(text=kept, truncated=already_truncated or kept != text, byte_count=byte_count)


def _cut(text: str) -> str:
    if len(text.encode()) <= LOG_BYTES:
        return text
    lines = [line[:LINE_CHARACTERS] for line in text.splitlines()]
    errors = {number for number, line in enumerate(lines) if ERROR.search(line)}
    near = {line for number in errors for line in range(number, number + 3)}
    resources = {number for number, line in enumerate(lines) if RESOURCES.search(line)} - near
    wanted = [*sorted(near), *sorted(resources)]
    rest = sorted(set(range(len(lines))) - near - resources)
    note = "[log cut: lines with errors first]"
    kept: list[str] = []
    room = LOG_BYTES - len(note) - 1
    for number in (*wanted, *rest):
        if number >= len(lines):
            continue
        room -= len(lines[number].encode()) + 1
        if room < 0:
            break
        kept.append(lines[number])
    return "\n".join([note, *kept])


def without_temporaries(text: str) -> str:
    """Names of a compiler's temporary files, as their unit is called."""
    return TEMPORARY.sub("", text)


def ran_out_of_memory(log: str) -> bool:
    return any(MEMORY_WORDS.search(line) for line in _own_lines(log))


def ran_out_of_time(log: str) -> bool:
    return any(TIME_WORDS.search(line) for line in _own_lines(log))


def _own_lines(log: str) -> list[str]:
    """What a tool says of itself; an author's text in an error message convicts no machine."""
    return [line for line in log.splitlines() if not QUOTED.match(line)]


def kernel_resources(log: str) -> tuple[KernelResources, ...]:
    """What `--ptxas-options=-v` says of each kernel, under its mangled name, in log order."""
    kernels: dict[str, KernelResources] = {}
    current: str | None = None
    for line in log.splitlines():
        if found := KERNEL.search(line):
            current = found.group(1)
            kernels[current] = KernelResources(name=current, registers=0)
        elif found := PROPERTIES.search(line):
            current = found.group(1) if found.group(1) in kernels else None
        elif current is not None:
            kernels[current] = _with_line(kernels[current], line)
    return tuple(kernels.values())


def _with_line(kernel: KernelResources, line: str) -> KernelResources:
    update: dict[str, int] = {}
    if found := SPILLS.search(line):
        names = ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
        update |= dict(zip(names, map(int, found.groups()), strict=True))
    if found := USED.search(line):
        update["registers"] = int(found.group(1))
    if found := SHARED.search(line):
        update["static_shared_bytes"] = int(found.group(1))
    return kernel.model_copy(update=update)
