"""How a candidate is built: files laid out, the entry unit, and one set of flags for every use.

The policy stage asks the compiler for its headers with the very flags of the build, so both take
them from here. A workspace holds `src/` (the submission, byte for byte, and the folder that the
compiler starts in), the entry unit beside it, and `out/`. Commands use relative paths only: the
log then names files as the author does, and equal submissions give equal commands.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evaluator import HARNESS_VERSION
from evaluator.entry_unit import entry_unit
from evaluator.process import Limits
from evaluator.records.base import digest_of
from evaluator.records.candidate import COMPILED_SUFFIXES, Binding, Candidate, Language
from evaluator.targets import Target
from evaluator.toolchain import Toolchain
from evaluator.triton.specification import specification, tracer_digest
from evaluator.work import Work

SOURCE_FOLDER = "src"
OUT_FOLDER = "out"
LIBRARY = "out/library.so"
DEPENDENCIES = "out/dependencies"
PTX = "out/located.ptx"
ENTRY_STEM = "ptxboard_entry"
COMPILE_SECONDS = 120
COMPILER_MEMORY_BYTES = 8 << 30
COMPILER_LIMITS = Limits(
    cpu_seconds=COMPILE_SECONDS,
    file_bytes=512 << 20,
    processes=128,
    address_space_bytes=COMPILER_MEMORY_BYTES,
)
SAFE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@/-]*")
CPP_SUFFIXES = COMPILED_SUFFIXES - {".cu"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """Everything that decides what comes out of a build; `key` covers all of it.

    units      translation units, relative to `src/`, the entry unit first
    flags      of compiling, without inputs, output and linking
    link       flags of linking
    entry_text the generated unit; of a Triton candidate what its tracer is told, until it ran
    versions   of the compilers, and of the processor where the code is made for it
    """

    compiler: str
    compiler_path: Path
    compiler_version: str
    units: tuple[str, ...]
    flags: tuple[str, ...]
    link: tuple[str, ...]
    mounts: tuple[Path, ...]
    entry_name: str
    entry_text: str
    versions: tuple[str, ...]

    def command(self) -> tuple[str, ...]:
        """Compiles and links everything, started in `src/`."""
        output = ("-o", f"../{LIBRARY}")
        return (str(self.compiler_path), *self.flags, *self.units, *self.link, *output)

    def shown_command(self) -> tuple[str, ...]:
        """The command as evidence shows it: without where the tools lie on this machine."""
        return self._shown(self.command())

    def shown_dependency_command(self) -> tuple[str, ...]:
        """Of the entry unit, as evidence shows it."""
        return self._shown(self.dependency_command(self.units[0]))

    def _shown(self, command: tuple[str, ...]) -> tuple[str, ...]:
        arguments = (_without_folders(argument, self.mounts) for argument in command[1:])
        return (self.compiler, *arguments)

    def dependency_command(self, unit: str) -> tuple[str, ...]:
        """Preprocesses one unit with the flags of the build; both of nvcc's passes.

        The headers go to the file that SUNPRO_DEPENDENCIES names. nvcc's own `-M` reads line
        markers, which a raw string literal can imitate, so its output is not used.
        """
        mode = "-M" if self.compiler == "nvcc" else "-E"
        return (str(self.compiler_path), *self.flags, mode, "-o", "../out/preprocessed", unit)

    def ptx_command(self, unit: str) -> tuple[str, ...]:
        """One unit's PTX, line for line as the build handed it to ptxas."""
        return (str(self.compiler_path), *self.flags, "-ptx", "-o", f"../{PTX}", unit)

    def key(self, work: Work) -> str:
        """SHA-256 over every byte and flag that can change the build."""
        candidate = work.candidate
        sources = [
            [source.path, source.byte_count, hashlib.sha256(source.content.encode()).hexdigest()]
            for source in candidate.sources
        ]
        return digest_of(
            {
                "harness": HARNESS_VERSION,
                "target": work.target.slug,
                "gencode": work.target.gencode,
                "language": candidate.language,
                "binding": candidate.binding,
                "entry": [candidate.entry_file, candidate.entry_symbol, self.entry_text],
                "sources": sources,
                "command": self.shown_command(),
                "versions": self.versions,
            }
        )


def plan(work: Work, toolchain: Toolchain) -> BuildPlan:
    """Raises EvaluatorFault with the fix when this machine lacks a tool that the build needs."""
    if not work.target.is_gpu:
        return _host_plan(work, toolchain)
    if work.candidate.language is Language.TRITON:
        return _triton_plan(work, toolchain)
    return _nvcc_plan(work, toolchain)


def lay_out(work: Work, build_plan: BuildPlan, workspace: Path) -> None:
    """Write the submission and the entry unit; the bytes compiled are the bytes hashed."""
    (workspace / OUT_FOLDER).mkdir(parents=True)
    for source in work.candidate.sources:
        path = workspace / SOURCE_FOLDER / source.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.content.encode())
        os.utime(path, (0, 0))  # line tables hold it, and equal sources give equal binaries
    (workspace / build_plan.entry_name).write_text(build_plan.entry_text)


def unreadable_source(candidate: Candidate) -> str | None:
    """One line on what keeps a compiler from reading the sources; None if nothing does."""
    for source in candidate.sources:
        if not SAFE_PATH.fullmatch(source.path):
            return (
                f"file name {source.path!r}: only letters, digits and . _ + @ - / are allowed, "
                "and a letter, digit or _ first"
            )
        offset = source.content.find("\x00")
        if offset >= 0:
            return (
                f"{source.path}: file is UTF-16 or binary (a zero byte at offset {offset}); "
                "save it as UTF-8"
            )
    return None


def _nvcc_plan(work: Work, toolchain: Toolchain) -> BuildPlan:
    nvcc, gxx = toolchain.need("nvcc"), toolchain.need("g++")
    assert work.target.gencode is not None
    flags = ["-O3", "-std=c++17", "-lineinfo", "--ptxas-options=-v"]
    flags += ["-gencode", work.target.gencode, "-Xcompiler", "-fPIC", "-I."]
    link = ["-shared", f"-L{nvcc.root / 'lib'}"]
    mounts, versions = [nvcc.root], [f"nvcc {nvcc.version}", f"g++ {gxx.version}"]
    if work.candidate.binding is Binding.TVM_FFI:
        ffi = toolchain.need_tvm_ffi()
        flags += ["-isystem", str(ffi.include)]
        link += [f"-L{ffi.lib}", "-ltvm_ffi"]
        mounts += [ffi.include, ffi.lib]
        versions.append(f"tvm-ffi {ffi.version}")
    return BuildPlan(
        compiler="nvcc",
        compiler_path=nvcc.path,
        compiler_version=f"nvcc {nvcc.version}",
        units=_units(work.candidate, work.target),
        flags=tuple(flags),
        link=tuple(link),
        mounts=tuple(mounts),
        entry_name=f"{ENTRY_STEM}.cu",
        entry_text=entry_unit(work.candidate, work.problem, work.target),
        versions=tuple(versions),
    )


def _host_plan(work: Work, toolchain: Toolchain) -> BuildPlan:
    gxx = toolchain.need("g++")
    return BuildPlan(
        compiler="g++",
        compiler_path=gxx.path,
        compiler_version=f"g++ {gxx.version}",
        units=_units(work.candidate, work.target),
        flags=("-O3", "-march=native", "-std=c++17", "-fPIC", "-I."),
        link=("-shared",),
        mounts=(gxx.root,),
        entry_name=f"{ENTRY_STEM}.cpp",
        entry_text=entry_unit(work.candidate, work.problem, work.target),
        versions=(f"g++ {gxx.version}", f"processor {_processor_digest()}"),
    )


def _triton_plan(work: Work, toolchain: Toolchain) -> BuildPlan:
    """Of the launcher, which needs the driver's header and no device compiler."""
    triton, gxx, nvcc = toolchain.need_triton(), toolchain.need("g++"), toolchain.need("nvcc")
    made_by = f"triton {triton.version}"
    return BuildPlan(
        compiler="g++",
        compiler_path=gxx.path,
        compiler_version=made_by,
        units=(f"../{ENTRY_STEM}.cpp",),
        flags=("-O1", "-std=c++17", "-fPIC", "-isystem", str(nvcc.root / "include")),
        link=("-shared",),
        mounts=(gxx.root, nvcc.root),
        entry_name=f"{ENTRY_STEM}.cpp",
        entry_text=specification(work),
        versions=(
            made_by,
            f"tracer {tracer_digest()}",
            f"g++ {gxx.version}",
            f"CUDA {nvcc.version}",
        ),
    )


def _units(candidate: Candidate, target: Target) -> tuple[str, ...]:
    """The entry unit, which includes the entry file, then every other source that compiles."""
    suffixes = COMPILED_SUFFIXES if target.is_gpu else CPP_SUFFIXES
    others = [
        source.path
        for source in candidate.sources
        if source.path != candidate.entry_file and PurePosixPath(source.path).suffix in suffixes
    ]
    return (f"../{ENTRY_STEM}{'.cu' if target.is_gpu else '.cpp'}", *others)


def _processor_digest() -> str:
    """`-march=native` makes code for this processor: another one must not take it from a cache."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return hashlib.sha256(line.encode()).hexdigest()[:16]
    return "unknown"


def _without_folders(argument: str, folders: tuple[Path, ...]) -> str:
    for folder in folders:
        if folder != Path("/usr"):
            argument = argument.replace(str(folder), folder.name)
    return argument
