"""A FlashInfer trace set on disk: definitions/, workloads/, solutions/ and traces/ under one root.

Tensors under blob/ are not read: workloads only name them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from evaluator.records.flashinfer import Definition, Solution, Trace
from evaluator.records.validation import FieldProblem, InvalidRecord, OpenRecord, read, write

RecordT = TypeVar("RecordT", bound=OpenRecord)
FILE_NAME = re.compile(r"(?!\.)[A-Za-z0-9._+-]{1,200}")
UNKNOWN_AUTHOR = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSet:
    """`workloads` and `traces` keep the order of their files' lines."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    workloads: tuple[Trace, ...] = ()
    solutions: dict[str, Solution] = field(default_factory=dict)
    traces: tuple[Trace, ...] = ()


def read_trace_set(root: Path) -> TraceSet:
    """The whole set. Raises InvalidRecord with the problems of all files at once.

    A pointer starts with the file, and the line where the file has many: `traces/a/g/x.jsonl:3`.
    """
    if not root.is_dir():
        rule = "expected a folder with definitions/, workloads/, solutions/ and traces/"
        raise InvalidRecord([FieldProblem(pointer="", seen=str(root), rule=rule)])
    problems: list[FieldProblem] = []
    definitions = _by_name(_documents(root, "definitions", Definition, problems), problems)
    solutions = _by_name(_documents(root, "solutions", Solution, problems), problems)
    workloads = tuple(_lines(root, "workloads", problems))
    traces = tuple(_lines(root, "traces", problems))
    if problems:
        raise InvalidRecord(problems)
    return TraceSet(
        definitions=definitions, workloads=workloads, solutions=solutions, traces=traces
    )


def write_trace_set(trace_set: TraceSet, root: Path) -> None:
    """Write the set's files under `root`, which is made if need be; equal names are replaced.

    Raises ValueError for a name that cannot be a file's name, or a trace of no known definition.
    """
    files: dict[Path, list[str]] = {}
    for definition in trace_set.definitions.values():
        path = _path("definitions", definition.op_type, definition.name, suffix=".json")
        files[path] = [write(definition)]
    for solution in trace_set.solutions.values():
        folder = _op_type(trace_set, solution.definition)
        files[_path("solutions", folder, solution.name, suffix=".json")] = [write(solution)]
    for trace in trace_set.workloads:
        folder = _op_type(trace_set, trace.definition)
        path = _path("workloads", folder, trace.definition, suffix=".jsonl")
        files.setdefault(path, []).append(write(trace))
    for trace in trace_set.traces:
        folder, author = _op_type(trace_set, trace.definition), _author(trace_set, trace)
        path = _path("traces", author, folder, trace.definition, suffix=".jsonl")
        files.setdefault(path, []).append(write(trace))
    for path, lines in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _documents(
    root: Path, folder: str, model: type[RecordT], problems: list[FieldProblem]
) -> Iterator[tuple[str, RecordT]]:
    for path in sorted((root / folder).rglob("*.json")):
        place = path.relative_to(root).as_posix()
        yield from ((place, found) for found in _reading(model, place, path.read_bytes(), problems))


def _lines(root: Path, folder: str, problems: list[FieldProblem]) -> Iterator[Trace]:
    for path in sorted((root / folder).rglob("*.jsonl")):
        place = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if line.strip():
                yield from _reading(Trace, f"{place}:{number}", line, problems)


def _reading(
    model: type[RecordT], place: str, text: bytes, problems: list[FieldProblem]
) -> Iterator[RecordT]:
    try:
        yield read(model, text)
    except InvalidRecord as error:
        problems.extend(_placed(error.problems, place))


def _placed(problems: Iterable[FieldProblem], place: str) -> Iterator[FieldProblem]:
    for problem in problems:
        pointer = f"{place}#{problem.pointer}" if problem.pointer else place
        yield replace(problem, pointer=pointer)


def _by_name(
    records: Iterator[tuple[str, RecordT]], problems: list[FieldProblem]
) -> dict[str, RecordT]:
    found: dict[str, RecordT] = {}
    places: dict[str, str] = {}
    for place, record in records:
        name = str(getattr(record, "name", ""))
        if name in found:
            rule = f"the name occurs twice; it is also in {places[name]}"
            problems.append(FieldProblem(pointer=f"{place}#name", seen=name, rule=rule))
            continue
        found[name], places[name] = record, place
    return found


def _op_type(trace_set: TraceSet, definition: str) -> str:
    if definition not in trace_set.definitions:
        known = ", ".join(trace_set.definitions) or "none"
        raise ValueError(f"definition {definition!r} is not in the set; definitions: {known}")
    return trace_set.definitions[definition].op_type


def _author(trace_set: TraceSet, trace: Trace) -> str:
    solution = trace_set.solutions.get(trace.solution or "")
    return solution.author if solution else UNKNOWN_AUTHOR


def _path(*names: str, suffix: str) -> Path:
    for name in names:
        if not FILE_NAME.fullmatch(name):
            rule = "letters, digits and . _ + - only, at most 200, not starting with a dot"
            raise ValueError(f"{name!r} cannot name a file of a trace set: {rule}")
    return Path(*names[:-1], names[-1] + suffix)
