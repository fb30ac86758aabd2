"""What an author hands in: sources, language and binding, for one problem on one target."""

import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Self

from pydantic import Field, field_validator, model_validator

from evaluator.records.base import Record, digest_of

MAX_SOURCE_BYTES = 1 << 20
MAX_SOURCE_FILES = 64
COMPILED_SUFFIXES = frozenset({".cu", ".cpp", ".cc", ".c", ".cxx"})


class Language(StrEnum):
    CUDA = "cuda"
    CPP = "cpp"
    TRITON = "triton"


ENTRY_FILES = {
    Language.CUDA: "kernel.cu",
    Language.CPP: "kernel.cpp",
    Language.TRITON: "kernel.py",
}
"""What a single source is called where its author gave it no name."""


class Binding(StrEnum):
    C = "c"
    TVM_FFI = "tvm-ffi"


def check_source_path(path: str) -> str:
    """A relative path inside the submission's folder, POSIX form, as it will be written.

    Raises ValueError with the path seen and the rule that it breaks.
    """
    seen = repr(path[:120])
    if not path or path.endswith("/"):
        raise ValueError(f"source path {seen}: expected a file name such as 'kernel.cu'")
    if "\x00" in path or any(ord(character) < 32 for character in path):
        raise ValueError(f"source path {seen}: control characters are not allowed")
    if "\\" in path or ":" in path:
        raise ValueError(f"source path {seen}: use forward slashes and no drive letters")
    if path.startswith("/"):
        raise ValueError(f"source path {seen}: must be relative")
    if ".." in path.split("/"):
        raise ValueError(f"source path {seen}: '..' is not allowed")
    if len(path) > 200:
        raise ValueError(f"source path {seen}: {len(path)} characters, at most 200")
    return str(PurePosixPath(path))


def path_clashes(paths: Sequence[str | None]) -> list[tuple[int, str]]:
    """(place, what is wrong) of each normalised path that cannot lie beside an earlier one.

    Two names that differ in case or Unicode form alone are one file where a bundle is unpacked on
    macOS or Windows; `a` beside `a/b.h` would be a file and a folder at once. None is passed over.
    Asked where kernels are handed in, and not of stored records, which must stay readable.
    """
    found = []
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for place, path in enumerate(paths):
        if path is None:
            continue
        name = _folded(path)
        parents = [str(parent) for parent in PurePosixPath(name).parents]
        if name == ".":
            found.append((place, f"path {path!r} names the folder itself, not a file in it"))
        elif rule := _clash(path, files.get(name), _first(name, parents, files, folders)):
            found.append((place, rule))
        files.setdefault(name, path)
        folders.update(dict.fromkeys(parents, path))
    return found


def _first(
    name: str, parents: list[str], files: dict[str, str], folders: dict[str, str]
) -> str | None:
    """The path that makes `name` a folder, or that makes one of its folders a file."""
    return folders.get(name) or next((files[one] for one in parents if one in files), None)


def _clash(path: str, twin: str | None, other: str | None) -> str | None:
    if twin == path:
        return f"path {path!r} occurs twice after normalising"
    if twin is not None:
        return f"paths {twin!r} and {path!r} differ in case or Unicode form only; rename one"
    if other is not None:
        return f"paths {other!r} and {path!r}: a name is a file and a folder at once; rename one"
    return None


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


class Source(Record):
    """One file; `content` is the very text that is hashed, stored and compiled."""

    path: str
    content: str

    @field_validator("path")
    @classmethod
    def _path_stays_inside(cls, path: str) -> str:
        return check_source_path(path)

    @property
    def byte_count(self) -> int:
        return len(self.content.encode())


class Candidate(Record):
    """A kernel for one problem on one target. Its digest covers every byte that is compiled."""

    problem: str
    target: str
    language: Language
    binding: Binding = Binding.C
    sources: tuple[Source, ...] = Field(min_length=1, max_length=MAX_SOURCE_FILES)
    entry_file: str
    entry_symbol: str = Field(default="run", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")

    @model_validator(mode="after")
    def _sources_fit(self) -> Self:
        paths = [source.path for source in self.sources]
        repeated = sorted({path for path in paths if paths.count(path) > 1})
        if repeated:
            raise ValueError(f"source path {repeated[0]!r} occurs twice after normalising")
        if self.entry_file not in paths:
            raise ValueError(f"entry file {self.entry_file!r} is not among the sources: {paths}")
        total = sum(source.byte_count for source in self.sources)
        if total > MAX_SOURCE_BYTES:
            raise ValueError(f"sources hold {total} bytes, at most {MAX_SOURCE_BYTES}")
        return self

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))
