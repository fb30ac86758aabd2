"""Reasoning that a server left in the answer's text, between tags such as `<think>`."""

import re
from dataclasses import dataclass

NAMES = "think|thinking|thought|reasoning|seed:think"
OPENING = re.compile(rf"^[ \t]*<(?P<name>{NAMES})>", re.MULTILINE | re.IGNORECASE)
ORPHAN = re.compile(rf"</(?:{NAMES})>[ \t]*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """`open` is true where the last block was never closed: the answer had not begun."""

    answer: str
    reasoning: str
    open: bool = False


def split_thinking(text: str) -> Thinking:
    """The answer without its reasoning blocks, and their text.

    A block begins at the start of a line and ends at its closing tag. A closing tag at the end of
    a line with no opening one before it ends reasoning that began in the prompt (DeepSeek's
    template does that). A block that is not closed runs to the end.
    """
    answer: list[str] = []
    reasoning: list[str] = []
    opening = OPENING.search(text)
    orphan = ORPHAN.search(text, 0, opening.start() if opening else len(text))
    position = 0
    if orphan:
        reasoning.append(text[: orphan.start()])
        position = orphan.end()
    while opening:
        answer.append(text[position : opening.start()])
        closing = f"</{opening['name']}>"
        end = _find(text, closing, opening.end())
        if end is None:
            reasoning.append(text[opening.end() :])
            return Thinking(answer="".join(answer), reasoning=_joined(reasoning), open=True)
        reasoning.append(text[opening.end() : end])
        position = end + len(closing)
        opening = OPENING.search(text, position)
    answer.append(text[position:])
    return Thinking(answer="".join(answer), reasoning=_joined(reasoning))


def _find(text: str, tag: str, start: int) -> int | None:
    found = re.compile(re.escape(tag), re.IGNORECASE).search(text, start)
    return found.start() if found else None


def _joined(parts: list[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
