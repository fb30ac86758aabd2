"""Kernel names as a reader knows them. Names are the candidate's: a child process reads them."""

import shutil
import subprocess
from collections.abc import Sequence

from evaluator.records.evidence import KernelLaunch

DEMANGLERS = ("cu++filt", "c++filt")
SECONDS = 10


def demangled(launches: Sequence[KernelLaunch]) -> tuple[KernelLaunch, ...]:
    """The same launches; a name stays as it is where no demangler knows better."""
    names = sorted({launch.name for launch in launches if launch.kind == "kernel"})
    readable = dict(zip(names, _filtered(names), strict=True))
    return tuple(
        launch.model_copy(update={"name": readable.get(launch.name, launch.name)})
        for launch in launches
    )


def _filtered(names: list[str]) -> list[str]:
    tool = next((found for name in DEMANGLERS if (found := shutil.which(name))), None)
    if tool is None or not names or any("\n" in name for name in names):
        return names
    try:
        done = subprocess.run(
            [tool],
            input="\n".join(names),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return names
    lines = done.stdout.splitlines()
    return lines if done.returncode == 0 and len(lines) == len(names) else names
