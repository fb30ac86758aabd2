"""When models and the PTX of each architecture came out, as a paper's authors give it."""

import json
from datetime import date
from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "published" / "release_dates.json"
TITLES = {"hopper": "PTX for Hopper", "blackwell": "PTX for Blackwell"}


@cache
def _dates() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return found


def release_source() -> str:
    return str(_dates()["source"])


def model_release(name: str) -> date | None:
    """None for a model that the file does not know."""
    told = _dates()["models"].get(name)
    return date.fromisoformat(told) if told else None


def ptx_releases() -> list[tuple[str, date]]:
    return [(TITLES[arch], date.fromisoformat(day)) for arch, day in _dates()["ptx"].items()]
