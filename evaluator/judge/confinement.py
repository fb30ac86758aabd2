"""What a host sees besides its own folder: an interpreter, our few modules, driver and tools."""

import os
import sys
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import evaluator.host
from evaluator.judge.mappings import VENDOR, banned_libraries
from evaluator.records.candidate import Binding
from evaluator.work import Work

HOST_FOLDER = Path(evaluator.host.__file__).resolve().parent
ROOT = HOST_FOLDER.parent.parent
START = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from evaluator.host.__main__ import main; "
    "code = main(sys.argv[1:]); sys.stdout.flush(); sys.stderr.flush(); "
    "import os; os._exit(code)"
)
LIBRARY_NAME = "candidate.so"
USR = Path("/usr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Read-only mounts, files hidden below them, and the environment of a host process."""

    mounts: tuple[Path, ...]
    hidden: tuple[Path, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def interpreter() -> tuple[str, ...]:
    """The base Python of this environment, isolated, without site packages."""
    executable = str(getattr(sys, "_base_executable", sys.executable) or sys.executable)
    return (os.path.realpath(executable), "-I", "-S", "-c", START.format(root=str(ROOT)))


def surroundings(work: Work) -> Surroundings:
    """Mounts for interpreter and host; on a GPU the driver's folder; TVM-FFI where it is used."""
    mounts = [HOST_FOLDER, *_interpreter_mounts()]
    libraries: list[str] = []
    environment: dict[str, str] = {}
    if work.target.is_gpu:
        folder = loaded_from("libcuda.so")
        mounts.append(folder)
        libraries.append(str(folder))
        environment |= own_gpu()
    if work.candidate.binding is Binding.TVM_FFI:
        mounts.append(ffi_library().parent)
        libraries.append(str(ffi_library().parent))
    if libraries:
        environment["LD_LIBRARY_PATH"] = ":".join(libraries)
    found = {path for folder in (USR, *mounts) for path in vendor_libraries(folder)}
    allowed = work.problem.allowed_libraries
    return Surroundings(
        mounts=tuple(dict.fromkeys(mounts)),
        hidden=tuple(sorted(path for path in found if banned_libraries([str(path)], allowed))),
        environment=environment,
    )


def own_gpu() -> dict[str, str]:
    """Variables under which the driver shows the judge's GPU, its first one, and no other.

    The host asks the driver before anything of the candidate's is loaded, which settles it for that
    process; a process that a candidate starts without them still finds the node files.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    order = os.environ.get("CUDA_DEVICE_ORDER")
    return {
        "CUDA_VISIBLE_DEVICES": first or "0",
        **({"CUDA_DEVICE_ORDER": order} if order else {}),
    }


@cache
def vendor_libraries(folder: Path) -> tuple[Path, ...]:
    """Libraries that compute what a candidate should: one that is not there cannot be loaded.

    Files only, since links lead to them; looked for once in the life of a judge.
    """
    return tuple(
        Path(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if VENDOR.match(name) and ".so" in name and not Path(place, name).is_symlink()
    )


def _interpreter_mounts() -> list[Path]:
    prefix = Path(os.path.realpath(sys.base_prefix))
    return [] if prefix.is_relative_to("/usr") else [prefix]


def loaded_from(name: str) -> Path:
    """The folder of a library that this process has loaded; the linker's default if it has not."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split()[-1]
            if Path(path).name.startswith(name):
                return Path(path).parent
    return Path("/usr/lib")


@cache
def ffi_library() -> Path:
    """libtvm_ffi.so of the installed package, without importing it (it may import torch)."""
    return _package_folder("tvm_ffi", "pip install 'ptxboard[worker]'") / "lib" / "libtvm_ffi.so"


@cache
def cupti_library() -> Path:
    """libcupti.so.13 of the package nvidia-cuda-cupti, or of the CUDA toolkit."""
    return find_cupti()


def find_cupti() -> Path:
    from evaluator.records.verdicts import EvaluatorFault

    spec = find_spec("nvidia")
    packages = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    inside = [place / part / "lib" for place in packages for part in ("cu13", "cuda_cupti")]
    toolkits = [Path("/usr/local/cuda/extras/CUPTI/lib64"), Path("/usr/local/cuda/lib64")]
    for folder in (*inside, *toolkits):
        if (folder / "libcupti.so.13").exists():
            return folder / "libcupti.so.13"
    looked = ", ".join(str(folder) for folder in (*inside, *toolkits))
    raise EvaluatorFault(
        f"libcupti.so.13 not found in {looked}: pip install 'nvidia-cuda-cupti>=13,<14'"
    )


def _package_folder(name: str, fix: str) -> Path:
    from evaluator.records.verdicts import EvaluatorFault

    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EvaluatorFault(f"package {name} is not installed on this worker: {fix}")
    return Path(next(iter(spec.submodule_search_locations)))
