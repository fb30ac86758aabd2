"""Which libraries a confined process maps, read from outside in /proc, and which are banned."""

import re
from collections.abc import Sequence
from pathlib import Path

# Also as packages bring them along: libscipy_openblas64_-32a4b2a6.so.
VENDOR = re.compile(
    r"lib(?:\w*_)?(cublas|cudnn|cutlass|cufft|cusolver|cusparse|curand|nvrtc|nccl|torch|c10|tensorrt"
    r"|nvinfer|mkl|openblas|flexiblas|blis|gslcblas|cblas|blas|dnnl)",
    re.IGNORECASE,
)


def mapped_libraries(root: int) -> tuple[str, ...]:
    """Paths of mapped shared objects of `root` and all processes below it."""
    seen: set[str] = set()
    for process in processes_of(root):
        seen |= _mapped_by(process)
    return tuple(sorted(seen))


def banned_libraries(paths: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Those of a vendor's that compute what the candidate should; `allowed` as policy names them.

    Whole names: a problem that allows CUB does not allow libcublas.
    """
    permitted = {library.casefold() for library in allowed}
    found = ((name, VENDOR.match(name)) for name in (Path(path).name for path in paths))
    return tuple(name for name, match in found if match and match[1].casefold() not in permitted)


def processes_of(root: int) -> list[int]:
    """`root` and everything below it, parents before their children."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            parents[int(entry.name)] = parent
    found, fresh = [], [root]
    while fresh:
        found += fresh
        fresh = [process for process, parent in parents.items() if parent in fresh]
    return found


def may_run(process: int) -> bool:
    """Whether it is neither stopped nor gone."""
    return _stat(Path(f"/proc/{process}"))[:1] not in ([], ["T"], ["t"], ["Z"], ["X"])


def _parent(entry: Path) -> int | None:
    fields = _stat(entry)
    return int(fields[1]) if len(fields) > 1 else None


def _stat(entry: Path) -> list[str]:
    """Of /proc/<process>/stat all from the state on; nothing where the process is gone."""
    try:
        return (entry / "stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def _mapped_by(process: int) -> set[str]:
    try:
        lines = Path(f"/proc/{process}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    fields = [line.split(maxsplit=5) for line in lines]
    paths = {parts[5] for parts in fields if len(parts) == 6}
    return {path for path in paths if ".so" in Path(path).name}
