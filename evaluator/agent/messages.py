"""Messages of a conversation with a model, and the bytes that stand for them in records."""

from collections.abc import Sequence
from typing import Literal

from pydantic import field_validator

from evaluator.records.base import Record, canonical_json, sha256_hex

Role = Literal["system", "user", "assistant"]


class Message(Record):
    """One message; `content` is the very text that is sent.

    A lone surrogate, which JSON's escapes can spell but UTF-8 cannot, becomes U+FFFD.
    """

    role: Role
    content: str

    @field_validator("content", mode="before")
    @classmethod
    def _has_utf8(cls, content: object) -> object:
        return well_formed(content) if isinstance(content, str) else content


def well_formed(text: str) -> str:
    """The text with every lone surrogate replaced, so that it has UTF-8 bytes."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def canonical_bytes(messages: Sequence[Message]) -> bytes:
    """Canonical JSON in UTF-8: a list of objects with `content` and `role`."""
    return canonical_json([message.model_dump(mode="json") for message in messages]).encode()


def digest(messages: Sequence[Message]) -> str:
    """SHA-256 over `canonical_bytes`, 64 hex digits."""
    return sha256_hex(canonical_bytes(messages))
