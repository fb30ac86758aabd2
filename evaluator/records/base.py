"""What every record shares: frozen models, strict JSON, canonical bytes and their digest."""

import hashlib
import json
import math
import re
from typing import Any, NoReturn, Self

from pydantic import BaseModel, ConfigDict

JsonValue = Any


class InvalidJson(ValueError):
    """Text that is not JSON as RFC 8259 has it; the message gives the line and what was seen."""


class Record(BaseModel):
    """A frozen record with no unknown fields; JSON in by `from_json`, JSON out by `to_json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(strict_loads(text))

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="json"))


def strict_loads(text: str | bytes) -> JsonValue:
    """JSON text to Python; refuses NaN, Infinity and repeated keys.

    Raises InvalidJson, which names the constant or key, and the line where it can be told.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidJson(f"not valid JSON: not UTF-8, offset {error.start}") from error
    source = text

    def refuse(constant: str) -> NoReturn:
        line = source[: _offset_of(constant, source)].count("\n") + 1
        raise InvalidJson(f"not valid JSON: {constant} at line {line}")

    try:
        return json.loads(
            text, parse_constant=refuse, object_pairs_hook=_unique, parse_float=_finite
        )
    except InvalidJson:
        raise
    except json.JSONDecodeError as error:
        raise InvalidJson(f"not valid JSON: {error.msg} at line {error.lineno}") from error
    except ValueError as error:
        raise InvalidJson("not valid JSON: an integer has more than 4300 digits") from error
    except RecursionError as error:
        raise InvalidJson("not valid JSON: nested too deeply") from error


_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN', re.DOTALL)


def _offset_of(constant: str, source: str) -> int:
    """Where `constant` stands first outside a string."""
    for match in _STRING_OR_CONSTANT.finditer(source):
        if match.group() == constant:
            return match.start()
    return 0


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidJson(f"not valid JSON: {text} is beyond the range of a double")
    return number


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    seen: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in seen:
            raise InvalidJson(f"not valid JSON: key {key!r} occurs twice in one object")
        seen[key] = value
    return seen


def canonical_json(value: JsonValue) -> str:
    """Sorted keys, no spaces, UTF-8 kept: equal values give equal text, and so equal digests."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest_of(value: JsonValue) -> str:
    """SHA-256 over the canonical JSON, 64 hex digits."""
    return sha256_hex(canonical_json(value).encode())


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
