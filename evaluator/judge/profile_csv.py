"""ncu's `--page source --csv`, columns found by their names; never by their place."""

import csv
import re
from typing import Any

ADDRESS, TEXT = "Address", "Source"
WARPS = ("# Instructions Executed", "Instructions Executed", "inst_executed")
THREADS = (
    "# Predicated-On Thread Instructions Executed",
    "Predicated-On Thread Instructions Executed",
    "thread_inst_executed_true",
)
KERNEL = "Kernel Name"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE]\+?\d{1,2})?")
UNIT = re.compile(r"\s*\[[^\]]*\]$")


class UnknownColumns(ValueError):
    """A header without the columns that we need; the text lists what was there."""


def rows_from_csv(text: str) -> list[dict[str, Any]] | None:
    """Actions as `read_profile` gives them; None where no table with rows was found.

    Raises UnknownColumns for a table whose header we do not know. `n/a` is no data: such a row
    makes the whole kernel's counts None rather than zero.
    """
    actions: list[dict[str, Any]] = []
    header: list[str] | None = None
    lines = text.removeprefix("\ufeff").splitlines()
    for fields in csv.reader(line for line in lines if not line.startswith("==")):
        if len(fields) >= 2 and fields[0].strip() == KERNEL:
            actions.append({"name": fields[1], "grid": None, "block": None, "rows": []})
            header = None
        elif TEXT in fields:
            header = _known(fields)
        elif header is not None and len(fields) == len(header):
            _add(actions, dict(zip(header, fields, strict=True)))
    return [action for action in actions if action["rows"] != []] or None


def _known(given: list[str]) -> list[str]:
    """The names without units, which some versions add in brackets."""
    header = [UNIT.sub("", name) for name in given]
    if _first(header, WARPS) is None or _first(header, THREADS) is None:
        raise UnknownColumns(f"columns of ncu's source page: {header}")
    return header


def _first(header: list[str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in header), None)


def _add(actions: list[dict[str, Any]], row: dict[str, str]) -> None:
    if not actions:
        actions.append({"name": "?", "grid": None, "block": None, "rows": []})
    if not row[TEXT].strip():
        return  # a row of units
    rows = actions[-1]["rows"]
    columns = list(row)
    warps = number(row[_first(columns, WARPS) or ""])
    threads = number(row[_first(columns, THREADS) or ""])
    if rows is None or warps is None or threads is None:
        actions[-1]["rows"] = None
        return
    rows.append([_address(row, len(rows)), row[TEXT].strip(), warps, threads])


def _address(row: dict[str, str], index: int) -> int:
    text = row.get(ADDRESS, "").strip()
    if not text:
        return index * 16
    try:
        return int(text, 10 if text.isdigit() else 16)
    except ValueError:
        raise UnknownColumns(f"no address: {text[:40]!r}") from None


def number(text: str) -> int | None:
    """A whole number as ncu prints it, thousands separated or not; None for `n/a`."""
    plain = text.replace(",", "").strip()
    return int(float(plain)) if NUMBER.fullmatch(plain) else None
