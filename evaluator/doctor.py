"""Each ability that evaluating needs, tried on this machine, with the fix where it is lacking.

On a machine without a GPU the abilities of the GPU lane do not count as lacking: it builds,
inspects and runs the `host` target.
"""

import importlib.util
from dataclasses import dataclass
from enum import StrEnum

from evaluator.environment import gpu_facts, installed_version
from evaluator.judge.confinement import find_cupti
from evaluator.records.verdicts import EvaluatorFault, Lane
from evaluator.sandbox import Sandbox
from evaluator.toolchain import INSTALL_HINTS, Tool, Toolchain

OLDEST = {
    "nvcc": (13, 0),
    "cuobjdump": (13, 0),
    "nvdisasm": (13, 0),
    "ncu": (2025, 3),
    "compute-sanitizer": (2025, 3),
    "g++": (9, 0),
}
BUILD, GPU, RUN = "building", "GPU targets", "running candidates"
FFI, TRITON = "the tvm-ffi binding", "Triton candidates"


# What a worker cannot do without; the sandbox is asked for where it is made, it may be waived.
NEEDED = {
    (Lane.BUILD, False): ("g++",),
    (Lane.BUILD, True): ("g++", "nvcc", "cuobjdump", "nvdisasm"),
    (Lane.GPU, False): ("torch",),
    (Lane.GPU, True): ("torch", "gpu", "ncu", "compute-sanitizer", "cupti"),
}


class State(StrEnum):
    OK = "ok"
    MISSING = "missing"
    TOO_OLD = "too old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """`required` is False for what this machine need not have; `fix` is a sentence."""

    name: str
    state: State
    seen: str
    needed_for: str
    fix: str = ""
    required: bool = True

    @property
    def lacking(self) -> bool:
        return self.required and self.state is not State.OK


def examine_machine(toolchain: Toolchain | None = None) -> tuple[Ability, ...]:
    tools = toolchain or Toolchain.find()
    facts = gpu_facts()
    has_gpu = facts["device_name"] is not None
    return (
        _sandbox(),
        _tool("g++", tools.gxx, BUILD, required=True),
        _tool("nvcc", tools.nvcc, BUILD, required=True),
        _tool("cuobjdump", tools.cuobjdump, BUILD, required=True),
        _tool("nvdisasm", tools.nvdisasm, BUILD, required=True),
        _tvm_ffi(tools),
        _triton(tools),
        _torch(),
        _gpu(facts),
        _tool("ncu", tools.ncu, GPU, required=has_gpu),
        _tool("compute-sanitizer", tools.compute_sanitizer, GPU, required=has_gpu),
        _cupti(required=has_gpu),
    )


def hindrances(abilities: tuple[Ability, ...], lane: Lane, *, on_gpu: bool) -> tuple[str, ...]:
    """What keeps this machine from a lane, each with its fix; empty where nothing does."""
    needed = NEEDED[lane, on_gpu]
    return tuple(
        f"{ability.name} is {ability.state}: {ability.fix}"
        for ability in abilities
        if ability.name in needed and ability.state is not State.OK
    )


def _sandbox() -> Ability:
    try:
        sandbox = Sandbox.find()
    except EvaluatorFault as fault:
        fix = str(fault)
        return Ability(name="sandbox", state=State.MISSING, seen="-", needed_for=RUN, fix=fix)
    state = State.OK if sandbox.sandboxed else State.MISSING
    fix = "" if sandbox.sandboxed else "install bubblewrap: apt-get install bubblewrap"
    return Ability(name="sandbox", state=state, seen=sandbox.description, needed_for=RUN, fix=fix)


def _tool(name: str, tool: Tool | None, needed_for: str, *, required: bool) -> Ability:
    if tool is None:
        state, seen, fix = State.MISSING, "-", INSTALL_HINTS[name]
    elif (numbers(tool.version)) < OLDEST[name]:
        oldest = ".".join(map(str, OLDEST[name]))
        state, seen = State.TOO_OLD, tool.version
        fix = f"version {tool.version}, at least {oldest} is needed: {INSTALL_HINTS[name]}"
    else:
        state, seen, fix = State.OK, f"{tool.version} ({tool.path})", ""
    return Ability(
        name=name, state=state, seen=seen, needed_for=needed_for, fix=fix, required=required
    )


def numbers(version: str) -> tuple[int, ...]:
    """(13, 0, 88) of '13.0.88'; stops at the first part that is not a number."""
    parts: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)


def _tvm_ffi(tools: Toolchain) -> Ability:
    found = tools.tvm_ffi
    return Ability(
        name="tvm-ffi",
        state=State.OK if found else State.MISSING,
        seen=found.version if found else "-",
        needed_for=FFI,
        fix="" if found else INSTALL_HINTS["tvm-ffi"],
        required=False,
    )


def _triton(tools: Toolchain) -> Ability:
    found = tools.triton
    return Ability(
        name="triton",
        state=State.OK if found else State.MISSING,
        seen=found.version if found else "-",
        needed_for=TRITON,
        fix="" if found else INSTALL_HINTS["triton"],
        required=False,
    )


def _torch() -> Ability:
    version = installed_version("torch") if importlib.util.find_spec("torch") else None
    return Ability(
        name="torch",
        state=State.OK if version else State.MISSING,
        seen=version or "-",
        needed_for=RUN,
        fix="" if version else "`pip install 'ptxboard[worker]'` (a build-only worker needs none)",
        required=False,
    )


def _gpu(facts: dict[str, str | None]) -> Ability:
    name, driver = facts["device_name"], facts["driver"]
    fix = "install the NVIDIA driver (580 or later), or pass the GPU into this container"
    return Ability(
        name="gpu",
        state=State.OK if name else State.MISSING,
        seen=f"{name}, driver {driver}" if name else "-",
        needed_for=GPU,
        fix="" if name else fix,
        required=False,
    )


def _cupti(*, required: bool) -> Ability:
    """The very file that the host process would load."""
    try:
        state, seen, fix = State.OK, str(find_cupti()), ""
    except EvaluatorFault as fault:
        state, seen, fix = State.MISSING, "-", str(fault)
    return Ability(name="cupti", state=state, seen=seen, needed_for=GPU, fix=fix, required=required)
