"""A problem: a FlashInfer-Trace definition and workload with what we judge it by."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from evaluator.records.base import Record, digest_of
from evaluator.records.flashinfer import Definition, Workload

LAYOUT_FIELDS = frozenset({"strides", "stride", "layout", "order"})


class Family(StrEnum):
    """What the judge needs to know: how to make inputs, the fp32 reference and the baseline.

    GQA: the inputs of FlashInfer-Trace's ragged and paged attention.
    OTHER: independent random inputs; the fp32 reference is the reference on fp32 inputs.
    """

    GEMM = "gemm"
    MHA_FORWARD = "mha_forward"
    MHA_BACKWARD = "mha_backward"
    GQA = "gqa"
    OTHER = "other"


class Tolerance(Record):
    """`|out - ref| <= atol + rtol * |ref|` on every element, as torch.allclose has it."""

    atol: float = 1e-2
    rtol: float = 1e-2


class Baseline(Record):
    """The tuned library that a speedup is measured against; its version is recorded per run."""

    name: str
    call: str


class Problem(Record):
    """One entry of the problem set; `digest` covers all of it.

    call_order  inputs, then outputs, as an entry point takes them. It is written down because
                sorted JSON and PostgreSQL's jsonb forget the order of an object's members;
                reading a problem puts the definition back into this order.
    """

    name: str
    title: str
    family: Family
    causal: bool = False
    development: bool = False
    definition: Definition
    call_order: tuple[str, ...] = ()
    workload: Workload
    tolerance: Tolerance = Tolerance()
    flop_count: int = Field(gt=0)
    byte_count: int = Field(gt=0, description="bytes of inputs and outputs in use, each once")
    baseline: Baseline
    targets: tuple[str, ...]
    allowed_libraries: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _restore_call_order(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        definition, order = value.get("definition"), value.get("call_order")
        if isinstance(definition, Definition) and not order:
            return {**value, "call_order": definition.call_order}
        if isinstance(definition, Mapping) and isinstance(order, list | tuple):
            return {**value, "definition": _in_order(definition, order)}
        return value

    @model_validator(mode="after")
    def _call_order_is_whole(self) -> Self:
        if self.call_order != self.definition.call_order:
            expected = ", ".join(self.definition.call_order)
            seen = ", ".join(self.call_order) or "none"
            rule = f"call_order must name the inputs, then the outputs: {expected}"
            raise ValueError(f"{rule}; seen: {seen}")
        return self

    @model_validator(mode="after")
    def _tensors_are_whole(self) -> Self:
        """Every extent is known and at least 1, and nothing but row-major order is asked for."""
        sizes = {**self.workload.axes, **_constants(self.definition)}
        for name, spec in {**self.definition.inputs, **self.definition.outputs}.items():
            for axis in spec.shape or ():
                if axis not in sizes:
                    raise ValueError(f"{name}: axis {axis!r} has no size in the workload")
                if sizes[axis] < 1:
                    rule = f"{name}: axis {axis!r} is 0; a tensor must have at least one element"
                    raise ValueError(rule)
            for field in LAYOUT_FIELDS & set(spec.model_extra or {}):
                rule = "tensors are row-major and contiguous; describe another order as axes"
                raise ValueError(f"{name}: {field!r} is not supported: {rule}")
        return self

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


def _constants(definition: Definition) -> dict[str, int]:
    return {name: axis.value for name, axis in definition.axes.items() if axis.type == "const"}


def _in_order(definition: Mapping[str, Any], order: list[str] | tuple[str, ...]) -> dict[str, Any]:
    sides = {side: definition[side] for side in ("inputs", "outputs") if side in definition}
    ranked = {name: number for number, name in reversed(list(enumerate(order)))}
    for side, specs in sides.items():
        if isinstance(specs, Mapping):
            names = sorted(specs, key=lambda name: ranked.get(name, len(order)))
            sides[side] = {name: specs[name] for name in names}
    return {**definition, **sides}
