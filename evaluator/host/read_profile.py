"""Nsight Compute's report as plain JSON; runs in the sandbox, since the report is hostile data.

Source: the module `ncu_report` of Nsight Compute (extras/python): one instance of a source metric
per instruction, its correlation id the address, `sass_by_pc` the text.
"""

import json
import sys
from typing import Any

WARPS, THREADS = "inst_executed", "thread_inst_executed_true"
MAX_ROWS = 200_000


def read_profile(report: str, module_folder: str, output: str) -> int:
    """Write {"actions": [...]} to `output`; raises whatever the module raises."""
    sys.path.insert(0, module_folder)
    import ncu_report

    actions = []
    context = ncu_report.load_report(report)
    for number in range(context.num_ranges()):
        part = context.range_by_idx(number)
        actions += [_action(part.action_by_idx(at)) for at in range(part.num_actions())]
    with open(output, "w", encoding="utf-8") as file:
        json.dump({"actions": actions}, file)
    return 0


def _action(action: Any) -> dict[str, Any]:
    return {
        "name": _mangled(action),
        "grid": _size(action, "launch__grid_dim"),
        "block": _size(action, "launch__block_dim"),
        "rows": _rows(action),
    }


def _mangled(action: Any) -> str:
    base = getattr(action, "NameBase_MANGLED", None)
    return str(action.name() if base is None else action.name(base))


def _size(action: Any, prefix: str) -> list[int] | None:
    metrics = [action.metric_by_name(f"{prefix}_{axis}") for axis in "xyz"]
    return None if None in metrics else [int(metric.as_uint64()) for metric in metrics]


def _rows(action: Any) -> list[list[Any]] | None:
    """[address, text, warps, threads] per instruction; None where a metric was not collected."""
    warps, threads = _counts(action, WARPS), _counts(action, THREADS)
    if warps is None or threads is None:
        return None
    return [
        [address, str(action.sass_by_pc(address)), warps.get(address, 0), count]
        for address, count in sorted(threads.items())[:MAX_ROWS]
    ]


def _counts(action: Any, name: str) -> dict[int, int] | None:
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return None
    places = metric.correlation_ids()
    many = range(metric.num_instances())
    return {int(places.as_uint64(at)): int(metric.as_uint64(at)) for at in many}
