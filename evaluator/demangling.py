"""Names of functions as authors wrote them. Names are hostile data: the demangler is confined."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from evaluator.process import Limits
from evaluator.sandbox import Sandbox, read_output

DEMANGLERS = ("cu++filt", "c++filt")
SECONDS = 10.0
MOST_NAMES = 200
MOST_BYTES = 1 << 20


def demangled(names: Sequence[str], sandbox: Sandbox) -> dict[str, str]:
    """Readable names by mangled ones; only those that a demangler knew."""
    tool = next((found for name in DEMANGLERS if (found := shutil.which(name))), None)
    asked = [name for name in dict.fromkeys(names) if "\n" not in name][:MOST_NAMES]
    if tool is None or not asked:
        return {}
    with sandbox.scratch() as workspace:
        (workspace / "names").write_text("\n".join(asked), encoding="utf-8", errors="replace")
        sandbox.run(
            ["/bin/sh", "-c", 'exec "$0" < names > readable', tool],
            workspace=workspace,
            read_only=(Path(tool).resolve().parent,),
            limits=Limits(cpu_seconds=int(SECONDS), file_bytes=MOST_BYTES),
            timeout_seconds=SECONDS,
        )
        data = read_output(workspace, "readable", limit_bytes=MOST_BYTES) or b""
    lines = data.decode("utf-8", errors="replace").splitlines()
    return dict(zip(asked, lines, strict=True)) if len(lines) == len(asked) else {}
