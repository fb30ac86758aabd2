"""The measuring half of the counters stage: Nsight Compute over one call, and its report read.

ncu starts inside the sandbox: it talks to its target over loopback, which the network namespace
keeps to itself. The process under it launches nothing but the candidate, so every kernel in the
report is the candidate's and no range has to be marked.
"""

import json
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator.device import Profile, ProfileRow
from evaluator.host.protocol import readable
from evaluator.judge.activity import Activity, launch_list, readable_launches
from evaluator.judge.confinement import HOST_FOLDER, interpreter
from evaluator.judge.profile_csv import UnknownColumns, rows_from_csv
from evaluator.judge.solo import Watched, library_digest, run_watched
from evaluator.records.evidence import Ending, KernelLaunch
from evaluator.sandbox import OutputRefused, Sandbox, read_output
from evaluator.toolchain import Tool, Toolchain
from evaluator.work import Work

PROFILE_SECONDS = 180.0
READ_SECONDS = 120.0
REPORT = "profile.ncu-rep"
ROWS = "rows.json"
MAX_ROWS_BYTES = 64 << 20
METRICS = (
    "inst_executed,thread_inst_executed_true,launch__grid_dim_x,launch__grid_dim_y,"
    "launch__grid_dim_z,launch__block_dim_x,launch__block_dim_y,launch__block_dim_z"
)
OPTIONS = ("--clock-control", "none", "--replay-mode", "application", "--metrics", METRICS)
# What ncu says when the driver keeps performance counters for administrators (field case O-23).
NO_PERMISSION = "ERR_NVGPUCTRPERM"
NAME_CHARACTERS = 1000


class UnreadableReport(Exception):
    """A report that no reader understands, or that is no report: the counts are unknown."""


def profile(work: Work, sandbox: Sandbox, toolchain: Toolchain) -> Profile:
    """Raises EvaluatorFault without ncu; every other trouble is told in the profile."""
    tool = _installation(toolchain.need("ncu"))
    name = f"{secrets.token_hex(8)}.ncu-rep"
    watched = run_watched(
        work,
        sandbox,
        tool,
        (*OPTIONS, "--force-overwrite", "--export", name),
        report_name=name,
        timeout_seconds=PROFILE_SECONDS,
    )
    log = watched.process.output_tail
    rows: tuple[ProfileRow, ...] | None = None
    launches: tuple[KernelLaunch, ...] = ()
    trouble = _trouble(log)
    if watched.report is not None and not trouble:
        try:
            actions = _read(watched.report, sandbox, tool)
            rows = tuple(row for action in actions for row in _rows(action))
            launches = readable_launches(_launches(actions), sandbox)
        except UnreadableReport as error:
            rows, trouble = None, f"the report could not be read: {error}"
    return Profile(
        tool_version=tool.version,
        process=watched.process,
        log=log,
        rows=rows,
        launches=launches,
        trouble=trouble or _ending_trouble(watched),
        report=watched.report,
        library_sha256=library_digest(work),
    )


def _trouble(log: str) -> str:
    if NO_PERMISSION in log:
        return (
            "counters not permitted: the driver keeps them for administrators; operator: set "
            "NVreg_RestrictProfilingToAdminUsers=0 or give the worker CAP_SYS_ADMIN"
        )
    errors = [line for line in log.splitlines() if line.startswith("==ERROR==")]
    return f"ncu: {errors[0].removeprefix('==ERROR==').strip()[:300]}" if errors else ""


def _ending_trouble(watched: Watched) -> str:
    if watched.process.ending is Ending.TIMED_OUT:
        return f"profiling did not end within {PROFILE_SECONDS:g} s"
    return watched.refusal or ("ncu wrote no report" if watched.report is None else "")


def _read(report: bytes, sandbox: Sandbox, tool: Tool) -> list[dict[str, Any]]:
    """Actions by the report module, or else by ncu's own CSV. Raises UnreadableReport."""
    with sandbox.scratch() as workspace:
        (workspace / REPORT).write_bytes(report)
        try:
            return _read_by_module(workspace, sandbox, tool)
        except UnreadableReport as error:
            by_csv = _read_by_csv(workspace, sandbox, tool)
            if by_csv is None:
                raise error
            return by_csv


def _read_by_module(workspace: Path, sandbox: Sandbox, tool: Tool) -> list[dict[str, Any]]:
    folder = module_folder(tool)
    if folder is None:
        raise UnreadableReport("no folder extras/python beside ncu")
    python = interpreter()
    mounts = (HOST_FOLDER, tool.root, folder, _prefix_of(python[0]))
    done = sandbox.run(
        [*python, "read-profile", REPORT, str(folder), ROWS],
        workspace=workspace,
        read_only=mounts,
        timeout_seconds=READ_SECONDS,
    )
    if done.exit_code != 0:
        raise UnreadableReport(done.output_tail.strip()[-300:] or f"exit code {done.exit_code}")
    return actions_from_json(_output(workspace, ROWS))


def actions_from_json(data: bytes) -> list[dict[str, Any]]:
    """What `evaluator.host.read_profile` made of hostile data. Raises UnreadableReport."""
    try:
        actions = json.loads(data)["actions"]
        return [
            {
                "name": readable(action["name"], NAME_CHARACTERS),
                "grid": _three(action["grid"]),
                "block": _three(action["block"]),
                "rows": action["rows"] and [_row(*row) for row in action["rows"]],
            }
            for action in actions
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableReport(f"{type(error).__name__}: {str(error)[:200]}") from error


def _row(address: object, text: object, warps: object, threads: object) -> list[Any]:
    counts = [int(value) for value in (address, warps, threads) if isinstance(value, int)]
    if len(counts) != 3 or min(counts) < 0:
        raise ValueError("a row without address and counts")
    return [counts[0], readable(text, NAME_CHARACTERS), counts[1], counts[2]]


def _output(workspace: Path, name: str) -> bytes:
    try:
        return read_output(workspace, name, limit_bytes=MAX_ROWS_BYTES) or b""
    except OutputRefused as error:
        raise UnreadableReport(str(error)) from error


def _read_by_csv(workspace: Path, sandbox: Sandbox, tool: Tool) -> list[dict[str, Any]] | None:
    script = 'exec "$@" > rows.csv'
    options = ["--import", REPORT, "--page", "source", "--csv"]
    sandbox.run(
        ["/bin/sh", "-c", script, "ncu", str(tool.path), *options],
        workspace=workspace,
        read_only=(tool.root, tool.path.resolve().parent),
        timeout_seconds=READ_SECONDS,
    )
    text = _output(workspace, "rows.csv").decode("utf-8", errors="replace")
    try:
        return rows_from_csv(text)
    except UnknownColumns as error:
        raise UnreadableReport(str(error)[:300]) from error


def _installation(tool: Tool) -> Tool:
    """The whole of Nsight Compute: the toolkit's `bin/ncu` is a script that looks for it."""
    folder = module_folder(tool)
    root = folder.parents[1] if folder else None
    if root is None or not (root / "ncu").exists():
        return tool
    return replace(tool, path=root / "ncu", root=root)


def module_folder(tool: Tool) -> Path | None:
    """Nsight Compute's `extras/python`, from wherever `ncu` lies."""
    for folder in tool.path.resolve().parents:
        if (folder / "extras" / "python" / "ncu_report.py").exists():
            return folder / "extras" / "python"
    nsight = sorted(Path("/opt/nvidia/nsight-compute").glob("*/extras/python"), reverse=True)
    return nsight[0] if nsight else None


def _prefix_of(executable: str) -> Path:
    return Path(executable).parent.parent


def _rows(action: dict[str, Any]) -> list[ProfileRow]:
    """Addresses count from the kernel's first instruction."""
    listed = action["rows"]
    if listed is None:
        raise UnreadableReport(f"no counts for kernel {action['name'][:200]!r}")
    base = min((row[0] for row in listed), default=0)
    return [
        ProfileRow(
            function=action["name"],
            address=address - base,
            text=text.strip(),
            warp_executions=warps,
            thread_executions=threads,
        )
        for address, text, warps, threads in listed
    ]


def _launches(actions: list[dict[str, Any]]) -> tuple[KernelLaunch, ...]:
    seen = [
        Activity(
            kind="kernel",
            name=action["name"],
            start_ns=0,
            end_ns=0,
            grid=action["grid"],
            block=action["block"],
        )
        for action in actions
    ]
    return launch_list(seen)


def _three(value: list[int] | None) -> tuple[int, int, int] | None:
    return None if value is None else (int(value[0]), int(value[1]), int(value[2]))
