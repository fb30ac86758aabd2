"""From a model's answer to one source file, or to the reason why there is none.

The rule: the last complete fenced block that defines the entry point. Its tag must be of the
language, a neutral one or none, so that shell blocks, diffs and logs never win. A block that only
declares the entry point counts where none defines it. Code inside reasoning is never taken.

An answer that its server cut off (`length`) is TRUNCATED, and so is one whose last block was not
closed: an earlier block may be the draft that the cut one was about to replace, and a verdict on a
kernel that the model had given up would say nothing.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Self

from pydantic import model_validator

from evaluator.agent.code_text import Syntax, code_only
from evaluator.agent.entry_points import EntryPoint, entry_point_in, has_kernel
from evaluator.agent.fences import C_TAGS, PYTHON_TAGS, Block, find_blocks
from evaluator.agent.messages import well_formed
from evaluator.agent.thinking import Thinking, split_thinking
from evaluator.records.base import Record
from evaluator.records.candidate import MAX_SOURCE_BYTES

CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
BLOCKED = frozenset({"content_filter", "refusal", "safety"})
NEUTRAL_TAGS = frozenset({"", "text", "txt", "plain", "plaintext", "code"})
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,200})"', re.MULTILINE)
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+\.?|import[ \t]+)(\w+)", re.MULTILINE)


class ExtractionState(StrEnum):
    EXTRACTED = "EXTRACTED"
    EMPTY = "EMPTY"
    REASONING_ONLY = "REASONING_ONLY"
    NO_CODE = "NO_CODE"
    TRUNCATED = "TRUNCATED"
    NO_ENTRY_POINT = "NO_ENTRY_POINT"
    SEVERAL_FILES = "SEVERAL_FILES"
    TOO_LARGE = "TOO_LARGE"


class Extraction(Record):
    """`source` only where the state is EXTRACTED; `block` counts fenced blocks from 1."""

    state: ExtractionState
    source: str | None = None
    message: str
    block: int | None = None

    @model_validator(mode="after")
    def _source_fits_state(self) -> Self:
        if (self.source is not None) != (self.state is ExtractionState.EXTRACTED):
            raise ValueError(f"state {self.state.value} and a source of {self.source is not None}")
        return self


def extract(
    answer: str,
    *,
    finish_reason: str | None,
    reasoning: str = "",
    language: str,
    entry_point: str = "run",
) -> Extraction:
    """What the answer hands in. Never raises, whatever the text.

    finish_reason  as the server named it; None where it named none
    reasoning      text that the server kept apart from the answer
    language       `cuda`, `cpp` or `triton`
    """
    text, finish_reason = _plain(answer), (finish_reason or "").lower() or None
    thinking = split_thinking(text)
    if not thinking.answer.strip():
        return _without_answer(thinking, reasoning, finish_reason)
    syntax = Syntax.PYTHON if language == "triton" else Syntax.C
    tags = NEUTRAL_TAGS | (PYTHON_TAGS if syntax is Syntax.PYTHON else C_TAGS)
    blocks = find_blocks(thinking.answer, syntax)
    usable = [block for block in blocks if block.tag in tags and block.code.strip()]
    cut = _cut_off(usable, finish_reason)
    if cut:
        return Extraction(state=ExtractionState.TRUNCATED, message=cut)
    if not usable:
        return _no_code(thinking.answer, blocks, language, finish_reason)
    return _chosen(usable, len(blocks), syntax, language, entry_point)


def _plain(answer: str) -> str:
    text = well_formed(answer).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_answer(thinking: Thinking, reasoning: str, finish_reason: str | None) -> Extraction:
    end = f"finish reason: {finish_reason or 'none'}"
    if thinking.reasoning or reasoning.strip():
        how = "was cut off while reasoning" if finish_reason in CUT else "ended with its reasoning"
        message = f"the answer {how}: {end}, no text outside of it"
        return Extraction(state=ExtractionState.REASONING_ONLY, message=message)
    message = f"the answer is empty: {end}"
    return Extraction(state=ExtractionState.EMPTY, message=message)


def _cut_off(usable: Sequence[Block], finish_reason: str | None) -> str:
    """Why nothing of the answer can be taken; '' if it is whole."""
    last = usable[-1] if usable else None
    where = ""
    if last and not last.closed:
        where = f"block {last.number}, which begins in line {last.line}, is not closed"
    if finish_reason in CUT:
        return f"the server cut the answer off (finish reason: {finish_reason})" + (
            f"; {where}" if where else ""
        )
    return where


def _no_code(
    text: str, blocks: Sequence[Block], language: str, finish_reason: str | None
) -> Extraction:
    filled = [block for block in blocks if block.code.strip()]
    seen = ", ".join(dict.fromkeys(block.tag or "no tag" for block in filled[:8]))
    message = f"{len(filled)} fenced blocks, none of {language} (seen: {seen})"
    if not filled:
        message = f"{len(text.strip())} characters of text, no fenced block"
    if finish_reason in BLOCKED:
        message += f"; the server stopped the answer (finish reason: {finish_reason})"
    return Extraction(state=ExtractionState.NO_CODE, message=message)


def _chosen(
    usable: Sequence[Block], total: int, syntax: Syntax, language: str, entry_point: str
) -> Extraction:
    ranks = [entry_point_in(block.code, syntax, entry_point) for block in usable]
    best = max(ranks)
    if best < EntryPoint.DECLARED:
        return _no_entry_point(best, len(usable), entry_point)
    place = len(ranks) - 1 - ranks[::-1].index(best)
    block = usable[place]
    others = [*usable[:place], *usable[place + 1 :]]
    missing = _elsewhere(block, others, syntax, language)
    if missing:
        return Extraction(state=ExtractionState.SEVERAL_FILES, message=missing, block=block.number)
    return _taken(block, total)


def _no_entry_point(best: EntryPoint, count: int, entry_point: str) -> Extraction:
    blocks = "the code block does not define" if count == 1 else f"none of {count} blocks defines"
    message = f"{blocks} {entry_point!r}"
    if best is EntryPoint.UNEXPORTED:
        message = f"{entry_point!r} is defined, but not exported under its name"
    return Extraction(state=ExtractionState.NO_ENTRY_POINT, message=message)


def _taken(block: Block, total: int) -> Extraction:
    byte_count = len(block.code.encode())
    if byte_count > MAX_SOURCE_BYTES:
        message = f"block {block.number} holds {byte_count} bytes, at most {MAX_SOURCE_BYTES}"
        return Extraction(state=ExtractionState.TOO_LARGE, message=message, block=block.number)
    return Extraction(
        state=ExtractionState.EXTRACTED,
        source=block.code,
        message=f"block {block.number} of {total} ({block.tag or 'no tag'}, line {block.line})",
        block=block.number,
    )


def _elsewhere(block: Block, others: Sequence[Block], syntax: Syntax, language: str) -> str:
    """What the block needs of another one; '' if it can stand alone."""
    needed = _names_needed(block.code, syntax)
    for other in others:
        name = PurePosixPath(other.file_name or "").name
        if name in needed and name != PurePosixPath(block.file_name or "").name:
            return f"block {block.number} needs {name}, which is block {other.number}"
    if language == "cuda" and not has_kernel(block.code):
        kernels = [other.number for other in others if has_kernel(other.code)]
        if kernels:
            return f"block {block.number} has no kernel; block {kernels[-1]} has"
    return ""


def _names_needed(code: str, syntax: Syntax) -> frozenset[str]:
    """Base names of the files that the code includes with quotes, or imports by a plain name."""
    if syntax is Syntax.PYTHON:
        modules = IMPORT.findall(code_only(code, syntax))
        return frozenset(f"{module}.py" for module in modules)
    return frozenset(PurePosixPath(path).name for path in INCLUDE.findall(code))
