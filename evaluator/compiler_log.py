"""What a compiler said: cleaned of paths, cut to the useful lines, and read for facts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.entry_unit import MARK
from evaluator.records.evidence import KernelResources

LOG_BYTES = 64 << 10
LINE_CHARACTERS = 2000
ERROR = re.compile(
    r"(?:^|[\s:,;)])(?:fatal )?error\b|\bfatal\b|undefined reference|ld: ", re.IGNORECASE
)
TEMPORARY = re.compile(r"/tmp/tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_|/tmp/cc\w{6}\b\.?")  # noqa: S108
OWN_PREFIX = re.compile(r"(?<![\w/.])\./(?=[\w.])")
MEMORY_WORDS = re.compile(
    r"out of memory|virtual memory exhausted|[Cc]annot allocate memory|std::bad_alloc|"
    r"died due to signal 9|Killed signal|memory allocation fail",
)
TIME_WORDS = re.compile(r"died due to signal 24|CPU time limit exceeded")
SIGNATURE = re.compile(re.escape(MARK) + r'([^"\n]+)')
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
    text = OWN_PREFIX.sub("", TEMPORARY.sub("", text))
    byte_count = len(output.encode())
    kept = _cut(text)
    return CleanLog(text=kept, truncated=already_truncated or kept != text, byte_count=byte_count)


def _cut(text: str) -> str:
    if len(text.encode()) <= LOG_BYTES:
        return text
    lines = [line[:LINE_CHARACTERS] for line in text.splitlines()]
    errors = {number for number, line in enumerate(lines) if ERROR.search(line)}
    wanted = sorted({near for number in errors for near in range(number, number + 3)})
    rest = [number for number in range(len(lines)) if number not in set(wanted)]
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


def first_error(log: str) -> str:
    """The line that an author should read first; '' where no line looks like an error."""
    found = SIGNATURE.search(log)
    if found:
        return found.group(1)
    for line in log.splitlines():
        if ERROR.search(line):
            return line.strip()[:500]
    return ""


def ran_out_of_memory(log: str) -> bool:
    return MEMORY_WORDS.search(log) is not None


def ran_out_of_time(log: str) -> bool:
    return TIME_WORDS.search(log) is not None


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
