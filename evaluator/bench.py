"""What this machine offers to stages: sandbox, tools, a build cache, and perhaps a judge."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.sandbox import Sandbox
from evaluator.toolchain import Toolchain

if TYPE_CHECKING:
    from evaluator.device import Device


@dataclass(frozen=True, kw_only=True)
class Bench:
    """`cache` keeps builds by their key, None keeps none; `device` is the judge's, on GPU lanes."""

    sandbox: Sandbox
    toolchain: Toolchain
    cache: Path | None = None
    device: "Device | None" = None

    @classmethod
    def of_this_machine(
        cls, *, cache: Path | None = None, device: "Device | None" = None
    ) -> "Bench":
        """Raises EvaluatorFault with the fix when no sandbox works here."""
        return cls(sandbox=Sandbox.find(), toolchain=Toolchain.find(), cache=cache, device=device)
