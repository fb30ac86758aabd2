"""The compilers and NVIDIA tools of this machine: where they lie and which version they are.

Looked for on PATH, below /usr/local/cuda, and in the PyPI packages of the running interpreter
(`site-packages/nvidia/cu13/bin`), in this order. Nothing is imported and nothing is downloaded.
"""

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evaluator.records.verdicts import EvaluatorFault

CUDA_FOLDERS = (Path("/usr/local/cuda"), Path("/opt/cuda"))
NSIGHT_FOLDERS = (Path("/opt/nvidia/nsight-compute"),)
VERSION = re.compile(r"(?:\bV|[Vv]ersion |\) )(\d+(?:\.\d+)+)")
INSTALL_HINTS = {
    "nvcc": "install a CUDA 13 toolkit, or `pip install 'ptxboard[toolkit]'`",
    "cuobjdump": "install a CUDA 13 toolkit, or `pip install 'ptxboard[toolkit]'`",
    "nvdisasm": "install a CUDA 13 toolkit, or `pip install 'ptxboard[toolkit]'`",
    "ncu": "install Nsight Compute 2025.3 or later (part of the CUDA toolkit)",
    "compute-sanitizer": "install the CUDA toolkit's compute-sanitizer",
    "g++": "install a C++17 compiler: apt-get install g++",
    "tvm-ffi": "`pip install 'ptxboard[worker]'` (apache-tvm-ffi)",
    "triton": "`pip install 'ptxboard[worker]'` (triton)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`root` is the folder to mount so that the tool finds all of its own parts."""

    path: Path
    version: str
    root: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TvmFfi:
    include: Path
    lib: Path
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Triton:
    """`package` is the folder of the module, which brings its own ptxas."""

    package: Path
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """None where a tool is missing; `need` turns that into words."""

    nvcc: Tool | None = None
    cuobjdump: Tool | None = None
    nvdisasm: Tool | None = None
    ncu: Tool | None = None
    compute_sanitizer: Tool | None = None
    gxx: Tool | None = None
    tvm_ffi: TvmFfi | None = None
    triton: Triton | None = None

    @classmethod
    def find(cls) -> "Toolchain":
        return _find()

    def need(self, name: str) -> Tool:
        """The tool called `nvcc`, `cuobjdump`, `ncu`, `compute-sanitizer`, `g++` or `nvdisasm`.

        Raises EvaluatorFault with the fix if this machine lacks it.
        """
        field = {"g++": "gxx", "compute-sanitizer": "compute_sanitizer"}.get(name, name)
        tool = getattr(self, field)
        if tool is None:
            raise EvaluatorFault(f"{name} was not found on this machine: {INSTALL_HINTS[name]}")
        assert isinstance(tool, Tool)
        return tool

    def need_tvm_ffi(self) -> TvmFfi:
        if self.tvm_ffi is None:
            raise EvaluatorFault(f"the tvm-ffi headers were not found: {INSTALL_HINTS['tvm-ffi']}")
        return self.tvm_ffi

    def need_triton(self) -> Triton:
        if self.triton is None:
            raise EvaluatorFault(f"triton was not found: {INSTALL_HINTS['triton']}")
        return self.triton


@lru_cache(maxsize=1)
def _find() -> Toolchain:
    return Toolchain(
        nvcc=_find_nvcc(),
        cuobjdump=_find_tool("cuobjdump"),
        nvdisasm=_find_tool("nvdisasm"),
        ncu=_find_tool("ncu"),
        compute_sanitizer=_find_tool("compute-sanitizer"),
        gxx=_find_tool("g++"),
        tvm_ffi=_find_tvm_ffi(),
        triton=_find_triton(),
    )


def _candidates(name: str) -> Iterator[Path]:
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for folder in CUDA_FOLDERS:
        yield folder / "bin" / name
    if name == "ncu":
        for folder in NSIGHT_FOLDERS:
            yield from sorted(folder.glob("*/ncu"), reverse=True)
    for folder in _pypi_cuda_folders():
        yield folder / "bin" / name


def _pypi_cuda_folders() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(location).glob("cu[0-9]*"), reverse=True)


def _find_tool(name: str) -> Tool | None:
    for path in _candidates(name):
        version = _version_of(path) if path.exists() else None
        if version:
            return Tool(path=path, version=version, root=_root_of(path))
    return None


def _root_of(path: Path) -> Path:
    real = path.resolve()
    return real.parent.parent if real.parent.name == "bin" else real.parent


def _version_of(path: Path) -> str | None:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = VERSION.search(done.stdout)
    return found.group(1) if found and done.returncode == 0 else None


def _find_nvcc() -> Tool | None:
    """The real binary: `nvcc` on PATH may be a script that starts the one of a toolkit."""
    tool = _find_tool("nvcc")
    if tool is None:
        return None
    done = subprocess.run(
        [tool.path, "-dryrun", "-E", "-x", "cu", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    found = re.search(r"^#\$ TOP=(.+)$", done.stderr, re.MULTILINE)
    root = Path(found.group(1)).resolve() if found else tool.root
    path = root / "bin" / "nvcc"
    return Tool(path=path if path.exists() else tool.path, version=tool.version, root=root)


def _find_tvm_ffi() -> TvmFfi | None:
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    include, lib = folder / "include", folder / "lib"
    if not (include / "tvm" / "ffi" / "tvm_ffi.h").exists() or not lib.is_dir():
        return None
    version = importlib.metadata.version("apache-tvm-ffi")
    return TvmFfi(include=include, lib=lib, version=version)


def _find_triton() -> Triton | None:
    """Only a build for NVIDIA: its compiler is what a candidate goes through."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        return None
    package = Path(next(iter(spec.submodule_search_locations)))
    if not (package / "backends" / "nvidia" / "bin" / "ptxas").exists():
        return None
    return Triton(package=package, version=importlib.metadata.version("triton"))
