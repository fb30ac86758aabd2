"""Reading replies whose shape is only a promise: every field may be missing or of another type."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.replies import MAX_TEXT_BYTES, Usage

MAX_TOKENS = 1_000_000_000  # what a counter of ours holds; more is not a count


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one API's reply says, in common words."""

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)


class Text:
    """Text that grows piece by piece, up to MAX_TEXT_BYTES."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: object) -> None:
        if isinstance(piece, str) and piece:
            self._size += len(piece)
            check_size(self._size)
            self._pieces.append(piece)

    def __str__(self) -> str:
        return "".join(self._pieces)


def check_size(size: int) -> None:
    if size > MAX_TEXT_BYTES:
        raise EndpointError(
            ErrorKind.TOO_LARGE,
            f"the model's answer has more than {MAX_TEXT_BYTES} bytes, the limit; set max_tokens",
        )


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> Iterator[dict[str, Any]]:
    """The objects of a list."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def word(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


def count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS:
        return value
    return None


def joined(values: Iterable[object]) -> str:
    """The strings among the values, joined; bounded like every answer."""
    text = Text()
    for value in values:
        text.add(value)
    return str(text)


def bad_reply(message: str, *, final: bool = False) -> EndpointError:
    return EndpointError(ErrorKind.BAD_REPLY, message, final=final)


def cut_short() -> EndpointError:
    return bad_reply("the endpoint's stream ended before its answer did")
