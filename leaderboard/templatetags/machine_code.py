"""Machine code for people: names of functions without their mangling, executions by opcode."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django import template

from evaluator.records.evidence import InstructionCount

register = template.Library()

ANONYMOUS = "_GLOBAL__N_"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeTotal:
    """`rows` instructions of one opcode and how often all of them ran in one call."""

    opcode: str
    tier: str
    rows: int
    warp_executions: int
    thread_executions: int


@register.filter
def by_opcode(instructions: Iterable[InstructionCount]) -> list[OpcodeTotal]:
    """The opcode that most warps ran comes first."""
    groups: dict[tuple[str, str], list[InstructionCount]] = {}
    for one in instructions:
        groups.setdefault((one.opcode, one.tier.value), []).append(one)
    totals = [
        OpcodeTotal(
            opcode=opcode,
            tier=tier,
            rows=len(rows),
            warp_executions=sum(one.warp_executions for one in rows),
            thread_executions=sum(one.thread_executions for one in rows),
        )
        for (opcode, tier), rows in groups.items()
    ]
    return sorted(totals, key=lambda one: (-one.warp_executions, one.opcode))


@register.filter
def function_name(symbol: str) -> str:
    """`_ZN7tensors4gemmIiEEvPi` is `tensors::gemm<>`; what is not understood stays as it is.

    Names only, without parameters (Itanium C++ ABI, 5.1.2: lengths before identifiers); unnamed
    namespaces are left out, since each file's has a random name.
    """
    mangled = re.match(r"_ZN?(?=\d)", symbol)
    if not mangled:
        return symbol
    names, position = [], mangled.end()
    while length := re.match(r"\d+", symbol[position:]):
        start = position + length.end()
        position = start + int(length[0])
        names.append(symbol[start:position])
        if not symbol.startswith("_ZN"):
            break
    if position > len(symbol):
        return symbol
    shown = "::".join(name for name in names if not name.startswith(ANONYMOUS))
    return f"{shown}<>" if shown and symbol[position : position + 1] == "I" else shown or symbol
