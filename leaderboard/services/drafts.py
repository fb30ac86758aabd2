"""From what a person typed or posted to a candidate, or to a list of everything wrong with it."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from evaluator.records.candidate import (
    COMPILED_SUFFIXES,
    ENTRY_FILES,
    MAX_SOURCE_BYTES,
    MAX_SOURCE_FILES,
    Candidate,
    check_source_path,
    path_clashes,
)
from evaluator.records.validation import field_problems, shortened
from evaluator.targets import TARGETS
from leaderboard.models import Problem
from leaderboard.refusals import FieldError, InvalidSubmission
from leaderboard.services.source_text import text_error

MAX_NAME_CHARACTERS = 100
MAX_DESCRIPTION_CHARACTERS = 4000
SUBMISSION_FIELDS = frozenset(
    {"problem", "target", "language", "binding", "source", "sources", "name", "description"}
    | {"entry_file", "entry_symbol", "entry_point"}
)
NO_LINE = frozenset({"Cc", "Zl", "Zp"})
UNSEEN = frozenset({"Cf", "Zs", "Mn", "Cn"})
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What was sent, not yet looked at; any field of a JSON body may have any type."""

    problem: Any
    target: Any
    sources: Any
    language: Any = None
    binding: Any = None
    name: Any = ""
    description: Any = ""
    entry_file: Any = None
    entry_symbol: Any = "run"
    sources_pointer: str = "sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDraft:
    problem: Problem
    candidate: Candidate
    name: str
    description: str


def draft_from_json(body: Mapping[str, Any]) -> Draft:
    """The native body of POST /api/v1/submissions/. Raises InvalidSubmission on its outline."""
    has_one, has_many = body.get("source") is not None, body.get("sources") is not None
    if has_one and has_many:
        message = "both 'source' and 'sources' were given; send one of them"
        raise InvalidSubmission([FieldError(pointer="source", message=message)])
    entry_file, entry_symbol = body.get("entry_file"), body.get("entry_symbol")
    if (entry_point := body.get("entry_point")) is not None:
        entry_file, entry_symbol = _split_entry_point(entry_point)
    return Draft(
        problem=body.get("problem"),
        target=body.get("target"),
        language=body.get("language"),
        binding=body.get("binding"),
        sources=[(entry_file, body["source"])] if has_one else body.get("sources"),
        sources_pointer="source" if has_one or not has_many else "sources",
        name=body.get("name"),
        description=body.get("description"),
        entry_file=entry_file,
        entry_symbol="run" if entry_symbol is None else entry_symbol,
    )


def _split_entry_point(entry_point: Any) -> tuple[str, str]:
    file, colons, symbol = str(entry_point).partition("::")
    if not colons or not file or not SYMBOL.fullmatch(symbol):
        message = "expected 'file::symbol', such as 'kernel.cu::run', with exactly one '::'"
        error = FieldError(pointer="entry_point", message=message, seen=shortened(entry_point))
        raise InvalidSubmission([error])
    return file, symbol


def check_draft(draft: Draft) -> CheckedDraft:
    """Everything at once: raises InvalidSubmission with all that is wrong, in the body's order.

    Status 413 where size is the only fault, else 400.
    """
    problem = known_problem(draft.problem)
    sources, source_errors = _read_sources(draft)
    errors = [
        *problem_errors(draft.problem, problem),
        *place_errors(draft.target, problem, language=draft.language, binding=draft.binding),
        *_symbol_errors(draft.entry_symbol),
        *source_errors,
        *text_errors("name", draft.name, MAX_NAME_CHARACTERS),
        *line_errors("name", draft.name),
        *text_errors("description", draft.description, MAX_DESCRIPTION_CHARACTERS),
    ]
    oversize = _size_errors(sources, draft.sources_pointer)
    entry_file, entry_errors = _entry_file(draft, sources) if not source_errors else ("", [])
    errors += [*oversize, *entry_errors]
    if errors or problem is None:
        raise InvalidSubmission(errors, too_large=errors == oversize)
    candidate = _candidate(draft, sources, entry_file)
    name = str(draft.name or "").strip() or f"{entry_file} {candidate.digest[:8]}"
    return CheckedDraft(
        problem=problem,
        candidate=candidate,
        name=name[:MAX_NAME_CHARACTERS],
        description=str(draft.description or ""),
    )


def known_problem(name: Any) -> Problem | None:
    if not isinstance(name, str) or "\x00" in name:
        return None
    return Problem.objects.current().filter(name=name).first() if _encodes(name) else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def problem_errors(seen: Any, problem: Problem | None) -> Iterator[FieldError]:
    if problem is not None:
        return
    names = list(Problem.objects.current().values_list("name", flat=True))
    near = get_close_matches(str(seen), names, n=1, cutoff=0.7)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    yield choice_error("problem", seen, names, hint)


def place_errors(
    slug: Any, problem: Problem | None, *, language: Any = None, binding: Any = None
) -> Iterator[FieldError]:
    """What is wrong with a target, and with a language and binding on it; None is a default."""
    target = TARGETS.get(slug) if isinstance(slug, str) else None
    if target is None:
        yield choice_error("target", slug, list(TARGETS))
        return
    if problem is not None and target.slug not in problem.targets:
        hint = f"; {problem.name} is not offered there"
        yield choice_error("target", target.slug, list(problem.targets), hint)
    if language is not None and language not in target.languages:
        yield choice_error("language", language, list(target.languages), f" on {target.slug}")
    allowed = target.bindings_of(language or target.languages[0])
    if binding is not None and binding not in allowed:
        torch = "; host code in Python is not run" if binding == "torch" else ""
        whom = f" for {language}" if binding in target.bindings else ""
        hint = f" on {target.slug}{whom}{torch}"
        yield choice_error("binding", binding, list(allowed), hint)


def _symbol_errors(symbol: Any) -> Iterator[FieldError]:
    if not isinstance(symbol, str) or not SYMBOL.fullmatch(symbol):
        message = "must be a C identifier of at most 128 characters"
        yield FieldError(pointer="entry_symbol", message=message, seen=shortened(symbol))


def choice_error(pointer: str, seen: Any, allowed: list[str], hint: str = "") -> FieldError:
    if seen is None:
        message = f"required, but missing; allowed: {', '.join(allowed)}"
        return FieldError(pointer=pointer, message=message, allowed=allowed)
    shown = seen[:100] if isinstance(seen, str) else shortened(seen)
    message = f"{shown!r} is not allowed{hint}; allowed: {', '.join(allowed)}"
    return FieldError(pointer=pointer, message=message, seen=shown, allowed=allowed)


def text_errors(pointer: str, value: Any, limit: int) -> Iterator[FieldError]:
    if value is None or value == "":
        return
    if not isinstance(value, str):
        yield FieldError(pointer=pointer, message="expected text", seen=shortened(value))
    elif problem := text_error(value):
        yield FieldError(pointer=pointer, message=problem, seen=ascii(value[:60]))
    elif len(value) > limit:
        message = f"{len(value)} characters, at most {limit}"
        yield FieldError(pointer=pointer, message=message, seen=str(len(value)), allowed=limit)


def line_errors(pointer: str, value: Any) -> Iterator[FieldError]:
    """One line that people can see: it stands in lists, logs and terminals."""
    text = value.strip() if isinstance(value, str) else ""
    if not text or "\x00" in text:
        return
    seen = ascii(text[:60])
    if control := next((one for one in text if unicodedata.category(one) in NO_LINE), None):
        message = f"{control!a} at offset {text.index(control)}; a {pointer} is one line"
        yield FieldError(pointer=pointer, message=message, seen=seen)
    elif all(unicodedata.category(one) in UNSEEN for one in text):
        message = f"no character of this {pointer} can be seen; leave it out or use letters"
        yield FieldError(pointer=pointer, message=message, seen=seen)


def _read_sources(draft: Draft) -> tuple[list[tuple[str, str]], list[FieldError]]:
    """(normalised path, text) of each readable source, and what is wrong with the others."""
    pointer, given = draft.sources_pointer, draft.sources
    if not isinstance(given, list | tuple) or not given:
        message = "required: 'source' as text, or 'sources' as a list of {path, content}"
        seen = "" if given is None else shortened(given)
        return [], [FieldError(pointer=pointer, message=message, seen=seen)]
    if len(given) > MAX_SOURCE_FILES:
        message = f"{len(given)} files, at most {MAX_SOURCE_FILES}; merge some of them"
        seen, limit = str(len(given)), MAX_SOURCE_FILES
        return [], [FieldError(pointer=pointer, message=message, seen=seen, allowed=limit)]
    sources: list[tuple[str, str]] = []
    errors: list[FieldError] = []
    for number, item in enumerate(given):
        place = pointer if pointer == "source" else f"{pointer}[{number}]"
        path, content = _parts(item)
        if pointer == "source" and path is None:
            path = _default_file(draft)
        found = [*_path_errors(place, path), *_content_errors(place, content)]
        errors += found
        if not found:
            sources.append((check_source_path(path), content))
    return sources, [*errors, *_repeated(pointer, sources)]


def _parts(item: Any) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        return item.get("path"), item.get("content")
    if isinstance(item, tuple) and len(item) == 2:
        return item
    return None, None


def _default_file(draft: Draft) -> str:
    target = TARGETS.get(draft.target) if isinstance(draft.target, str) else None
    language = draft.language or (target.languages[0] if target else "cuda")
    known = {one.value: name for one, name in ENTRY_FILES.items()}
    return known.get(language, "kernel.cu") if isinstance(language, str) else "kernel.cu"


def _path_errors(place: str, path: Any) -> Iterator[FieldError]:
    pointer = "entry_file" if place == "source" else f"{place}.path"
    if not isinstance(path, str):
        message = "required: a relative path such as 'kernel.cu'"
        yield FieldError(pointer=pointer, message=message, seen=shortened(path))
        return
    try:
        path.encode()
        check_source_path(path)
    except UnicodeEncodeError:
        message = "source path: not valid Unicode (a lone surrogate)"
        yield FieldError(pointer=pointer, message=message, seen=ascii(path[:60]))
    except ValueError as error:
        yield FieldError(pointer=pointer, message=str(error), seen=ascii(path[:120]))


def _content_errors(place: str, content: Any) -> Iterator[FieldError]:
    pointer = place if place == "source" else f"{place}.content"
    if not isinstance(content, str):
        yield FieldError(
            pointer=pointer, message="required: the file's text", seen=shortened(content)
        )
    elif problem := text_error(content):
        yield FieldError(pointer=pointer, message=problem)
    elif not content.strip():
        yield FieldError(pointer=pointer, message="the file is empty; send a kernel")


def _repeated(pointer: str, sources: list[tuple[str, str]]) -> Iterator[FieldError]:
    paths = [path for path, _ in sources]
    for place, message in path_clashes(paths):
        yield FieldError(pointer=pointer, message=message, seen=paths[place])


def _size_errors(sources: list[tuple[str, str]], pointer: str) -> list[FieldError]:
    total = sum(len(content.encode()) for _, content in sources)
    if total <= MAX_SOURCE_BYTES:
        return []
    message = f"the sources hold {total} bytes, at most {MAX_SOURCE_BYTES}; shorten them"
    return [FieldError(pointer=pointer, message=message, seen=str(total), allowed=MAX_SOURCE_BYTES)]


def _entry_file(draft: Draft, sources: list[tuple[str, str]]) -> tuple[str, list[FieldError]]:
    paths = [path for path, _ in sources]
    if draft.entry_file is not None:
        try:
            wanted = check_source_path(str(draft.entry_file))
        except ValueError:
            wanted = str(draft.entry_file)[:200]
        if wanted in paths:
            return wanted, []
        message = f"entry file {wanted!r} is not among the sources: {', '.join(paths)}"
        return "", [FieldError(pointer="entry_file", message=message, seen=wanted, allowed=paths)]
    compiled = [path for path in paths if path.endswith(tuple(COMPILED_SUFFIXES))] or paths
    if len(compiled) == 1:
        return compiled[0], []
    message = f"say which file defines the entry point; one of {', '.join(compiled)}"
    return "", [FieldError(pointer="entry_file", message=message, allowed=compiled)]


def _candidate(draft: Draft, sources: list[tuple[str, str]], entry_file: str) -> Candidate:
    target = TARGETS[draft.target]
    value = {
        "problem": draft.problem,
        "target": target.slug,
        "language": draft.language or target.languages[0],
        "binding": draft.binding or target.bindings[0],
        "sources": [{"path": path, "content": content} for path, content in sources],
        "entry_file": entry_file,
        "entry_symbol": draft.entry_symbol,
    }
    try:
        return Candidate.model_validate(value)
    except ValidationError as error:
        raise InvalidSubmission(
            [
                FieldError(pointer=one.pointer, message=one.rule, seen=one.seen)
                for one in field_problems(error, value)
            ]
        ) from error
