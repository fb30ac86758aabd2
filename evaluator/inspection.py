"""A built library looked at with the binary tools, each in the sandbox: it is hostile data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluator.bench import Bench
from evaluator.build import ENTRY_STEM, LIBRARY, OUT_FOLDER
from evaluator.compiler_log import kernel_resources
from evaluator.demangling import demangled
from evaluator.process import Limits
from evaluator.records.evidence import Ending, ProcessReport
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import OutputTooLarge, read_output
from evaluator.symbols import Symbols, parse
from evaluator.targets import Target

TOOL_SECONDS = 60.0
TOOL_LIMITS = Limits(cpu_seconds=60, file_bytes=512 << 20, processes=64)
LISTING_BYTES = 256 << 20
CUBIN_BYTES = 64 << 20
MOST_CUBINS = 128
LISTING = "out/listing"
CUBIN_FOLDER = "out/cubins"
NO_SUCH_TOOL = (126, 127)


class Unreadable(Exception):
    """A tool of ours runs but cannot read this library; only its author can make one like that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """`cubins`: device code by unit, the entry unit's first; `demangled`: kernel names."""

    symbols: Symbols = field(default_factory=lambda: Symbols(exported=(), undefined=(), needed=()))
    cubins: tuple[bytes, ...] = ()
    demangled: dict[str, str] = field(default_factory=dict)


def inspect(target: Target, bench: Bench, workspace: Path, log: str) -> Inspection:
    """Symbols of `out/library.so`, its cubins on a GPU target, and readable kernel names.

    Raises EvaluatorFault when a tool is missing, Unreadable.
    """
    listing = tool_output(
        ["readelf", "--wide", "--dynamic", "--dyn-syms", f"../{LIBRARY}"], bench, workspace
    )
    symbols = parse(listing)
    names = [*symbols.unresolved, *(kernel.name for kernel in kernel_resources(log))]
    return Inspection(
        symbols=symbols,
        cubins=_cubins(bench, workspace) if target.is_gpu else (),
        demangled=demangled(names, bench.sandbox),
    )


def tool_output(argv: Sequence[str], bench: Bench, workspace: Path) -> str:
    """What a tool prints, whole: through a file, since the captured output is bounded.

    Raises EvaluatorFault when the tool is missing, Unreadable.
    """
    script = 'exec "$@" > ../out/listing'
    report = run_tool(["/bin/sh", "-c", script, "tool", *argv], bench, workspace)
    _demand_success(argv[0], report)
    listing = _output(workspace, LISTING, LISTING_BYTES) or b""
    return listing.decode("utf-8", errors="replace")


def run_tool(argv: Sequence[str], bench: Bench, workspace: Path) -> ProcessReport:
    """Started in `out/`'s sibling `src/`, with cuobjdump and nvdisasm on its PATH."""
    tools = [bench.toolchain.cuobjdump, bench.toolchain.nvdisasm]
    roots = tuple(dict.fromkeys(tool.path.parent for tool in tools if tool is not None))
    path = ":".join([*map(str, roots), "/usr/local/bin:/usr/bin:/bin"])
    return bench.sandbox.run(
        argv,
        workspace=workspace,
        cwd=OUT_FOLDER,
        read_only=roots,
        env={"PATH": path},
        limits=TOOL_LIMITS,
        timeout_seconds=TOOL_SECONDS,
    )


def _demand_success(name: str, report: ProcessReport) -> None:
    if report.ending is Ending.FINISHED and report.exit_code == 0:
        return
    end = report.detail or f"exit code {report.exit_code}"
    text = f"{Path(name).name} cannot read the library ({end}): {report.output_tail.strip()[-500:]}"
    raise EvaluatorFault(text) if report.exit_code in NO_SUCH_TOOL else Unreadable(text)


def _output(workspace: Path, name: str, limit_bytes: int) -> bytes | None:
    try:
        return read_output(workspace, name, limit_bytes=limit_bytes)
    except OutputTooLarge as error:
        raise Unreadable(f"too much to inspect in the library: {error}") from error


def _cubins(bench: Bench, workspace: Path) -> tuple[bytes, ...]:
    cuobjdump = bench.toolchain.need("cuobjdump")
    bench.toolchain.need("nvdisasm")
    script = 'mkdir cubins && cd cubins && exec "$0" -xelf all ../library.so'
    report = run_tool(["/bin/sh", "-c", script, str(cuobjdump.path)], bench, workspace)
    _demand_success("cuobjdump", report)
    folder = workspace / CUBIN_FOLDER
    found = sorted(path.name for path in folder.iterdir())
    if len(found) > MOST_CUBINS:
        raise Unreadable(f"{len(found)} device binaries in the library, at most {MOST_CUBINS}")
    ours = [name for name in found if name.startswith(f"{ENTRY_STEM}.")]
    names = [*ours, *(name for name in found if name not in ours)]
    contents = (_output(workspace, f"{CUBIN_FOLDER}/{name}", CUBIN_BYTES) for name in names)
    return tuple(data for data in contents if data)
