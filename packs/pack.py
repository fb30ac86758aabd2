"""Knowledge packs: what a model is told about an architecture before it writes a kernel.

A pack is a folder with `pack.toml` (its format is in packs/README.md) and the files it names. One
that names a missing file, or holds a file that it does not name, does not load. A loaded pack is a
snapshot: whatever happens to its files later, text and digest stay one. Nothing here counts tokens:
the counts stand in `pack.toml`, and `packs.tokens` refreshes them.
"""

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from evaluator.records.problem import Family
from evaluator.targets import TARGETS, Arch

ROOT = Path(__file__).parent
PACKS = ("hopper", "blackwell")
MANIFEST = "pack.toml"
PROBES = "probes"
"""Programs that prove a pack; they are no part of its text and of its digest."""


class Level(StrEnum):
    """How much a pack tells; each level holds all before it."""

    PARAMETERS = "parameters"
    FUNCTIONS = "functions"
    CONTRACTS = "contracts"
    SCHEDULE = "schedule"

    def holds(self, other: "Level") -> bool:
        order = list(Level)
        return order.index(other) <= order.index(self)


HEADINGS = {
    Level.PARAMETERS: "Architecture parameters",
    Level.FUNCTIONS: "PTX wrapper functions",
    Level.CONTRACTS: "Contracts",
    Level.SCHEDULE: "Schedules",
}


class InvalidPack(Exception):
    """A pack's folder is not as its `pack.toml` says; the message names file and fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file of the base text as it was when the pack was loaded; `file` is as in `pack.toml`."""

    level: Level
    title: str
    file: str
    path: Path
    text: str
    token_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(Part):
    """How a well-studied operator is laid out over warps and time."""

    slug: str
    families: tuple[Family, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance(Part):
    """Advice of experts for families of problems, given only where a run asks for it."""

    families: tuple[Family, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLink:
    """What a statement with `[id]` behind it rests on; `url` is None for our own measurements."""

    id: str
    title: str
    url: str | None


@dataclass(frozen=True, kw_only=True)
class Pack:
    """`evidence` says in one sentence how far we have checked the pack ourselves."""

    name: str
    title: str
    version: str
    architecture: Arch
    targets: tuple[str, ...]
    evidence: str
    folder: Path
    manifest: str
    parts: tuple[Part, ...]
    schedules: tuple[Schedule, ...]
    guidance: tuple[Guidance, ...]
    sources: tuple[SourceLink, ...]

    @property
    def files(self) -> tuple[Part, ...]:
        return (*self.parts, *self.schedules, *self.guidance)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over `pack.toml` and every file it names, each with its name and length."""
        sha256 = hashlib.sha256()
        named = [(MANIFEST, self.manifest), *((one.file, one.text) for one in self.files)]
        for name, text in sorted(named):
            data = text.encode()
            sha256.update(f"{name}\0{len(data)}\0".encode())
            sha256.update(data)
        return sha256.hexdigest()

    def facts(self) -> dict[str, object]:
        """What names the pack, as JSON, with the tokens of its base text by level."""
        return {
            "name": self.name,
            "title": self.title,
            "version": self.version,
            "digest": self.digest,
            "architecture": self.architecture.value,
            "targets": list(self.targets),
            "evidence": self.evidence,
            "tokens": {level.value: self.token_count(level) for level in list(Level)[:-1]},
        }

    def parts_of(self, level: Level) -> tuple[Part, ...]:
        """The parts of this very level, in the order of `pack.toml`."""
        return tuple(part for part in self.parts if part.level is level)

    def token_count(self, level: Level) -> int:
        """Of the base text up to and with `level`, without schedules and guidance."""
        return sum(part.token_count for part in self.parts if level.holds(part.level))

    def schedule(self, slug: str) -> Schedule:
        """Raises KeyError whose text lists the known ones."""
        for schedule in self.schedules:
            if schedule.slug == slug:
                return schedule
        known = ", ".join(schedule.slug for schedule in self.schedules)
        raise KeyError(f"pack {self.name} has no schedule {slug!r}; it has: {known}")

    def schedules_for(self, family: Family) -> tuple[Schedule, ...]:
        return tuple(one for one in self.schedules if family in one.families)

    def guidance_for(self, family: Family) -> tuple[Guidance, ...]:
        return tuple(one for one in self.guidance if family in one.families)

    def text(
        self,
        level: Level,
        *,
        schedules: Sequence[str] = (),
        guidance_for: Family | None = None,
    ) -> str:
        """The exact text that enters a prompt; ends with one newline.

        Raises KeyError for an unknown schedule, ValueError for a schedule below level `schedule`.
        """
        if schedules and level is not Level.SCHEDULE:
            raise ValueError(
                f"schedules {', '.join(schedules)} were asked for at level {level.value}; "
                "only level schedule holds schedules"
            )
        sections = [f"# {self.title}: what the hardware offers\n\n{self.evidence}\n"]
        for one in Level:
            parts: Sequence[Part] = self.parts_of(one)
            if one is Level.SCHEDULE:
                parts = [self.schedule(slug) for slug in schedules]
            if level.holds(one) and parts:
                sections.append(f"## {HEADINGS[one]}\n")
                sections.extend(_section(part) for part in parts)
        if guidance_for is not None and (advice := self.guidance_for(guidance_for)):
            sections.append("## Guidance\n")
            sections.extend(_section(part) for part in advice)
        return "\n".join(sections)


def _section(part: Part) -> str:
    text = part.text.strip("\n")
    if part.path.suffix == ".cuh":
        return f"### {part.title} (`{part.path.name}`)\n\n```cuda\n{text}\n```\n"
    return f"### {part.title}\n\n{text}\n"


def find_pack(name: str) -> Pack:
    """The pack called `name`; raises KeyError that lists the known ones, InvalidPack if broken."""
    if name not in PACKS:
        raise KeyError(f"pack {name!r} is not known; known packs: {', '.join(PACKS)}")
    return _found(name)


def pack_for(architecture: Arch) -> Pack:
    """The pack of an architecture; raises KeyError where there is none."""
    return find_pack(architecture.value)


@lru_cache(maxsize=len(PACKS))
def _found(name: str) -> Pack:
    return load_pack(ROOT / name)


def load_pack(folder: Path) -> Pack:
    """Raises InvalidPack if `pack.toml` or the files beside it are not as they must be."""
    manifest = folder / MANIFEST
    try:
        text = manifest.read_text(encoding="utf-8")
        pack = _pack_of(text, folder)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InvalidPack(f"{manifest}: {type(error).__name__}: {error}") from error
    for fault in (*_unnamed(pack), *_repeats(pack)):
        raise InvalidPack(f"{manifest}: {fault}")
    return pack


def _pack_of(manifest: str, folder: Path) -> Pack:
    table = tomllib.loads(manifest)
    unknown_targets = sorted(set(table["targets"]) - set(TARGETS))
    if unknown_targets:
        raise ValueError(f"targets {unknown_targets} are not known; known: {', '.join(TARGETS)}")
    return Pack(
        name=folder.name,
        title=table["title"],
        version=table["version"],
        architecture=Arch(table["architecture"]),
        targets=tuple(table["targets"]),
        evidence=table["evidence"],
        folder=folder,
        manifest=manifest,
        parts=tuple(
            Part(level=Level(row["level"]), **_file_of(row, folder)) for row in table["part"]
        ),
        schedules=tuple(
            Schedule(
                level=Level.SCHEDULE,
                slug=row["slug"],
                families=_families(row),
                **_file_of(row, folder),
            )
            for row in table.get("schedule", ())
        ),
        guidance=tuple(
            Guidance(level=Level.SCHEDULE, families=_families(row), **_file_of(row, folder))
            for row in table.get("guidance", ())
        ),
        sources=tuple(
            SourceLink(id=row["id"], title=row["title"], url=row.get("url"))
            for row in table["source"]
        ),
    )


def _file_of(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = (folder / row["file"]).resolve()
    if not path.is_relative_to(folder.parent.resolve()):
        raise ValueError(f"file {row['file']!r} lies outside the packs")
    if not path.is_file():
        raise ValueError(f"names {row['file']}, which is not there")
    return {
        "file": row["file"],
        "path": path,
        "text": path.read_text(encoding="utf-8"),
        "title": row["title"],
        "token_count": int(row["tokens"]),
    }


def _families(row: dict[str, Any]) -> tuple[Family, ...]:
    return tuple(Family(name) for name in row["families"])


def _unnamed(pack: Pack) -> list[str]:
    folder = pack.folder.resolve()
    named = {folder / MANIFEST, *(one.path for one in pack.files)}
    names = [
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path not in named
    ]
    return [
        f"does not name {name}, which lies beside it" for name in names if name.parts[0] != PROBES
    ]


def _repeats(pack: Pack) -> list[str]:
    faults = []
    for what, values in (
        ("file", [one.file for one in pack.files]),
        ("schedule", [one.slug for one in pack.schedules]),
        ("source", [one.id for one in pack.sources]),
    ):
        twice = sorted({value for value in values if values.count(value) > 1})
        faults += [f"{what} {value!r} is there twice" for value in twice]
    return faults
