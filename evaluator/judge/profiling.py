"""The measuring half of the counters stage: Nsight Compute over one call, and its report read.

ncu starts inside the sandbox: it talks to its target over loopback, which the network namespace
keeps to itself. The process under it launches nothing but the candidate, so every kernel in the
report is the candidate's and no range has to be marked.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator.device import Profile, ProfileRow
from evaluator.judge.confinement import HOST_FOLDER, interpreter
from evaluator.judge.names import demangled
from evaluator.judge.profile_csv import rows_from_csv
from evaluator.judge.solo import library_digest, run_watched
from evaluator.records.evidence import Ending, KernelLaunch
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import Sandbox, read_output
from evaluator.toolchain import Tool, Toolchain
from evaluator.work import Work

PROFILE_SECONDS = 180.0
READ_SECONDS = 120.0
REPORT = "profile.ncu-rep"
ROWS = "rows.json"
MAX_ROWS_BYTES = 64 << 20
OPTIONS = (
    "--clock-control",
    "none",
    "--replay-mode",
    "application",
    "--metrics",
    "inst_executed,thread_inst_executed_true,launch__grid_dim_x,launch__grid_dim_y,"
    "launch__grid_dim_z,launch__block_dim_x,launch__block_dim_y,launch__block_dim_z",
    "--force-overwrite",
    "--export",
    REPORT,
)
# What ncu says when the driver keeps performance counters for administrators (field case O-23).
NO_PERMISSION = "ERR_NVGPUCTRPERM"


def profile(work: Work, sandbox: Sandbox, toolchain: Toolchain) -> Profile:
    """Raises EvaluatorFault without ncu; every other trouble is told in the profile."""
    tool = _installation(toolchain.need("ncu"))
    watched = run_watched(
        work, sandbox, tool, OPTIONS, report_name=REPORT, timeout_seconds=PROFILE_SECONDS
    )
    log = watched.process.output_tail
    actions, trouble = None, _trouble(log)
    if watched.report is not None and not trouble:
        actions, trouble = _read(watched.report, sandbox, tool)
    rows = None if actions is None else tuple(row for action in actions for row in _rows(action))
    return Profile(
        tool_version=tool.version,
        process=watched.process,
        log=log,
        rows=rows,
        launches=_launches(actions or []),
        trouble=trouble or _ending_trouble(watched.process.ending, watched.report),
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


def _ending_trouble(ending: Ending, report: bytes | None) -> str:
    if ending is Ending.TIMED_OUT:
        return f"profiling did not end within {PROFILE_SECONDS:g} s"
    return "" if report is not None else "ncu wrote no report"


def _read(report: bytes, sandbox: Sandbox, tool: Tool) -> tuple[list[dict[str, Any]] | None, str]:
    """Actions by the report module, or else by ncu's own CSV; or why neither came."""
    with sandbox.scratch() as workspace:
        (workspace / REPORT).write_bytes(report)
        by_module, why = _read_by_module(workspace, sandbox, tool)
        if by_module is not None:
            return by_module, ""
        by_csv = _read_by_csv(workspace, sandbox, tool)
    return (by_csv, "") if by_csv else (None, f"the report could not be read: {why}")


def _read_by_module(
    workspace: Path, sandbox: Sandbox, tool: Tool
) -> tuple[list[dict[str, Any]] | None, str]:
    folder = module_folder(tool)
    if folder is None:
        return None, "no folder extras/python beside ncu"
    python = interpreter()
    mounts = (HOST_FOLDER, tool.root, folder, _prefix_of(python[0]))
    done = sandbox.run(
        [*python, "read-profile", REPORT, str(folder), ROWS],
        workspace=workspace,
        read_only=mounts,
        timeout_seconds=READ_SECONDS,
    )
    data = read_output(workspace, ROWS, limit_bytes=MAX_ROWS_BYTES)
    if data is None or done.exit_code != 0:
        return None, done.output_tail.strip()[-300:] or f"reader ended with {done.exit_code}"
    actions: list[dict[str, Any]] = json.loads(data)["actions"]
    return actions, ""


def _read_by_csv(workspace: Path, sandbox: Sandbox, tool: Tool) -> list[dict[str, Any]] | None:
    script = 'exec "$@" > rows.csv'
    options = ["--import", REPORT, "--page", "source", "--csv"]
    sandbox.run(
        ["/bin/sh", "-c", script, "ncu", str(tool.path), *options],
        workspace=workspace,
        read_only=(tool.root, tool.path.resolve().parent),
        timeout_seconds=READ_SECONDS,
    )
    text = read_output(workspace, "rows.csv", limit_bytes=MAX_ROWS_BYTES) or b""
    return rows_from_csv(text.decode("utf-8", errors="replace"))


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
        raise EvaluatorFault(f"ncu collected no counts for kernel {action['name'][:200]!r}")
    base = min((row[0] for row in listed), default=0)
    return [
        ProfileRow(
            function=str(action["name"]),
            address=int(address) - base,
            text=str(text).strip(),
            warp_executions=int(warps),
            thread_executions=int(threads),
        )
        for address, text, warps, threads in listed
    ]


def _launches(actions: list[dict[str, Any]]) -> tuple[KernelLaunch, ...]:
    from evaluator.judge.activity import Activity, launch_list

    seen = [
        Activity(
            kind="kernel",
            name=str(action["name"]),
            start_ns=0,
            end_ns=0,
            grid=_three(action["grid"]),
            block=_three(action["block"]),
        )
        for action in actions
    ]
    return demangled(launch_list(seen))


def _three(value: list[int] | None) -> tuple[int, int, int] | None:
    return None if value is None else (value[0], value[1], value[2])
