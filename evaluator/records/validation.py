"""Reading records that others wrote: nothing is lost, and every broken rule is told at once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from evaluator.records.base import InvalidJson, JsonValue, strict_loads

MAX_SEEN = 120
ModelT = TypeVar("ModelT", bound=BaseModel)
Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """`pointer` is a path such as `spec.entry_point` or `sources[1].path`; '' is the whole body."""

    pointer: str
    seen: str
    rule: str

    def __str__(self) -> str:
        where = self.pointer or "body"
        return f"{where}: {self.rule}" + (f" (seen: {self.seen})" if self.seen else "")

    def to_json(self) -> dict[str, str]:
        return asdict(self)


class InvalidRecord(ValueError):
    """A record breaks rules; `problems` holds all of them, in the order of the text."""

    def __init__(self, problems: Iterable[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A rule between fields that the raw value at `location` breaks."""

    location: Location
    rule: str
    seen: JsonValue


class OpenRecord(BaseModel):
    """A frozen record of someone else's schema: unknown fields stay, absent fields stay absent."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    @classmethod
    def breaches(cls, value: "Parts") -> Iterable[Breach]:
        """Rules that one field's type cannot say; called on the raw value, whatever its types."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _tell_every_breach(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        lines = [_line(breach) for breach in cls.breaches(Parts(value))]
        try:
            model = handler(value)
        except ValidationError as error:
            lines = [_kept(line) for line in error.errors(include_url=False)] + lines
        if lines:
            raise ValidationError.from_exception_data(cls.__name__, lines)
        return model

    @model_serializer(mode="wrap")
    def _leave_absent_fields_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        return {key: dumped[key] for key in dumped if key in self.model_fields_set}


class Parts:
    """A raw value, JSON or models, that answers 'nothing' where it has another type."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self, key: str) -> Any:
        if isinstance(self._value, Mapping):
            return self._value.get(key)
        if isinstance(self._value, BaseModel):
            return getattr(self._value, key, None)
        return None

    def text(self, key: str) -> str | None:
        found = self.get(key)
        return str(found) if isinstance(found, str) else None

    def under(self, key: str) -> "Parts":
        return Parts(self.get(key))

    def items(self, key: str) -> list[tuple[str, Any]]:
        found = self.get(key)
        if not isinstance(found, Mapping):
            return []
        return [(name, item) for name, item in found.items() if isinstance(name, str)]

    def elements(self, key: str) -> list[Any]:
        found = self.get(key)
        sequence = isinstance(found, Sequence) and not isinstance(found, str | bytes)
        return list(found) if sequence else []


def read(model: type[ModelT], text: str | bytes) -> ModelT:
    """JSON text as `model`. Raises InvalidRecord with every problem, never only the first."""
    try:
        value = strict_loads(text)
    except InvalidJson as error:
        raise InvalidRecord([FieldProblem(pointer="", seen="", rule=str(error))]) from error
    return read_value(model, value)


def read_value(model: type[ModelT], value: JsonValue) -> ModelT:
    """A parsed JSON value as `model`. Raises InvalidRecord with every problem."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidRecord(field_problems(error, value)) from error


def write(record: BaseModel) -> str:
    """The JSON text of a record, members in the order in which they came."""
    value = record.model_dump(mode="json")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def field_problems(error: ValidationError, value: JsonValue) -> tuple[FieldProblem, ...]:
    """What a ValidationError of `value` says, one entry a field and rule."""
    told = [_field_problem(dict(line), value) for line in error.errors(include_url=False)]
    return tuple(dict.fromkeys(told))


def _field_problem(line: dict[str, Any], value: JsonValue) -> FieldProblem:
    missing = line["type"] == "missing"
    return FieldProblem(
        pointer=_pointer(line["loc"], value, may_be_absent=line["type"] in ("missing", "rule")),
        seen="" if missing else shortened(line["input"]),
        rule="required, but missing" if missing else _rule(line),
    )


def _rule(line: dict[str, Any]) -> str:
    message = str(line["msg"])
    return message.removeprefix("Value error, ")


def _pointer(location: Location, value: JsonValue, *, may_be_absent: bool) -> str:
    """The location without the names of union members, which no reader of the JSON knows."""
    path, current = "", value
    for number, part in enumerate(location):
        last = number == len(location) - 1
        if isinstance(part, int) and isinstance(current, list | tuple) and part < len(current):
            path, current = f"{path}[{part}]", current[part]
        elif isinstance(part, str) and isinstance(current, Mapping) and part in current:
            path, current = f"{path}.{part}" if path else part, current[part]
        elif may_be_absent and last:
            path = f"{path}.{part}" if path else str(part)
    return path


def shortened(value: JsonValue) -> str:
    """The value as JSON text where it is JSON, cut to MAX_SEEN characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= MAX_SEEN else text[: MAX_SEEN - 3] + "..."


def _line(breach: Breach) -> InitErrorDetails:
    kind = PydanticCustomError("rule", "{rule}", {"rule": breach.rule})
    return InitErrorDetails(type=kind, loc=breach.location, input=breach.seen)


def _kept(line: Any) -> InitErrorDetails:
    kind = PydanticCustomError(line["type"], "{rule}", {"rule": line["msg"]})
    return InitErrorDetails(type=kind, loc=line["loc"], input=line["input"])
