"""SASS as `cuobjdump --dump-sass` prints it: instruction rows, opcode families and tiers.

Only instruction rows count: an address comment, an optional predicate, an opcode. Names of
functions and sections are the author's text and are never matched. Families follow the paper's
literal rule; the tier beside a match tells arithmetic from data movement and mere control, since
a bare `wgmma.commit_group` already emits a dummy HGMMA and a bare `tcgen05.alloc` UTCATOMSWS.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.records.verdicts import Tier

ROW = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,8})\*/\s+(?P<text>[^;/]+?)\s*;")
FUNCTION = re.compile(r"^\s*Function : (?P<name>\S+)\s*$")
OPCODE = re.compile(r"(?:@!?U?P(?:\d|T)\s+)?(?P<opcode>[A-Z][A-Za-z0-9_.]*)(?=\s|;|$)")
DUMMY_OPERANDS = re.compile(r"^\S+\s+RZ,\s*gdesc\[URZ\]")
GMMA = re.compile(r"^[A-Z]?GMMA$")
TENSOR_CORE_5 = re.compile(r"^UTC[A-Z0-9]*MMA$")
UTC_PAYLOAD = ("UTCCP", "UTCSHIFT")
TIER_ORDER = (Tier.MMA, Tier.PAYLOAD, Tier.CONTROL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One row; `text` is without the address and the encoding, with its predicate."""

    function: str
    address: int
    opcode: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    instruction: Instruction
    family: str
    tier: Tier


def parse_listing(listing: str) -> tuple[Instruction, ...]:
    """Every instruction row, in order, under the mangled name of its function."""
    function = ""
    rows: list[Instruction] = []
    for line in listing.splitlines():
        if header := FUNCTION.match(line):
            function = header["name"]
        elif row := ROW.match(line):
            opcode = opcode_of(row["text"])
            if opcode is not None:
                rows.append(
                    Instruction(
                        function=function,
                        address=int(row["address"], 16),
                        opcode=opcode,
                        text=row["text"],
                    )
                )
    return tuple(rows)


def opcode_of(text: str) -> str | None:
    """`HGMMA.64x8x16.F32.BF16` of an instruction's text; None where there is no opcode."""
    found = OPCODE.match(text.strip())
    return found["opcode"] if found else None


def functions_of(listing: str) -> tuple[str, ...]:
    matches = (FUNCTION.match(line) for line in listing.splitlines())
    return tuple(match["name"] for match in matches if match)


def family_of(opcode: str, families: Sequence[str]) -> str | None:
    """The family of a target that an opcode belongs to; None if it does not count."""
    base = opcode.split(".")[0]
    for family in families:
        if family == "GMMA":
            if GMMA.match(base):
                return family
        elif family == "UTC":
            if base.startswith("UTC"):
                return family
        elif base == family:
            return family
    return None


def tier_of(text: str, opcode: str) -> Tier:
    """What an instruction that counts really does, by its opcode and operands."""
    base = opcode.split(".")[0]
    if GMMA.match(base):
        operands = text[text.index(opcode) :]
        return Tier.CONTROL if DUMMY_OPERANDS.match(operands) else Tier.MMA
    if TENSOR_CORE_5.match(base):
        return Tier.MMA
    if base.startswith("UTC") and base not in UTC_PAYLOAD:
        return Tier.CONTROL
    return Tier.PAYLOAD


def match_instruction(instruction: Instruction, families: Sequence[str]) -> Match | None:
    family = family_of(instruction.opcode, families)
    if family is None:
        return None
    tier = tier_of(instruction.text, instruction.opcode)
    return Match(instruction=instruction, family=family, tier=tier)


def find_matches(instructions: Sequence[Instruction], families: Sequence[str]) -> tuple[Match, ...]:
    matches = (match_instruction(instruction, families) for instruction in instructions)
    return tuple(match for match in matches if match is not None)


def highest_tier(tiers: Sequence[Tier]) -> Tier | None:
    """Arithmetic before data movement before control; None of nothing."""
    return next((tier for tier in TIER_ORDER if tier in tiers), None)


def count_opcodes(instructions: Sequence[Instruction]) -> dict[str, int]:
    """Static counts, most frequent first."""
    return dict(Counter(instruction.opcode for instruction in instructions).most_common())


def short_opcode(opcode: str) -> str:
    """`HGMMA.64x256x16` of `HGMMA.64x256x16.F32.BF16`, as messages show it."""
    return ".".join(opcode.split(".")[:2])
