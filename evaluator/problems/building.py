"""What every problem is built with: tensor specs, axes, bytes, names of workloads."""

import uuid
from collections.abc import Iterable, Mapping
from importlib.resources import files
from math import prod

from evaluator.records.flashinfer import (
    ConstAxis,
    Definition,
    DType,
    InputSpec,
    RandomInput,
    TensorSpec,
    VarAxis,
    Workload,
)
from evaluator.records.problem import Baseline, Family, Problem, Tolerance

GPU_TARGETS = ("h200", "h100", "b200")
ALL_TARGETS = ("host", *GPU_TARGETS)
DTYPE_BYTES = {DType.BFLOAT16: 2, DType.FLOAT32: 4, DType.INT32: 4}
OUR_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://github.com/ptxboard/ptxboard/workloads")
TOLERANCE = Tolerance()
TOLERANCE_TEXT = (
    f"Accepted where |out - ref| <= {TOLERANCE.atol:g} + {TOLERANCE.rtol:g} * |ref| "
    "holds for every element of every output."
)


def problem_of(
    *,
    title: str,
    family: Family,
    definition: Definition,
    sizes: dict[str, int],
    flop_count: int,
    baseline: Baseline,
    small: bool,
    causal: bool = False,
    byte_count: int | None = None,
    inputs: Mapping[str, InputSpec] | None = None,
    workload_id: str | None = None,
) -> Problem:
    """`inputs`: those that are not plainly random; `byte_count`: where not all of it is moved."""
    drawn: dict[str, InputSpec] = {name: RandomInput(type="random") for name in definition.inputs}
    workload = Workload(
        axes=sizes,
        inputs={**drawn, **(inputs or {})},
        uuid=workload_id or str(uuid.uuid5(OUR_NAMESPACE, definition.name)),
    )
    return Problem(
        name=definition.name,
        title=title,
        family=family,
        causal=causal,
        development=small,
        definition=definition,
        workload=workload,
        tolerance=TOLERANCE,
        flop_count=flop_count,
        byte_count=byte_count or bytes_of(definition, sizes),
        baseline=baseline,
        targets=ALL_TARGETS if small else GPU_TARGETS,
    )


def bytes_of(definition: Definition, sizes: Mapping[str, int], without: Iterable[str] = ()) -> int:
    """Of all inputs and outputs but `without`; scalars count nothing."""
    tensors = {**definition.inputs, **definition.outputs}
    return sum(
        prod(sizes[axis] for axis in spec.shape) * DTYPE_BYTES[spec.dtype]
        for name, spec in tensors.items()
        if spec.shape is not None and name not in without
    )


def constants(**sizes: int) -> dict[str, ConstAxis | VarAxis]:
    return {name: ConstAxis(type="const", value=size) for name, size in sizes.items()}


def bf16(*axes: str, description: str | None = None) -> TensorSpec:
    return _spec(axes, DType.BFLOAT16, description)


def fp32(*axes: str, description: str | None = None) -> TensorSpec:
    return _spec(axes, DType.FLOAT32, description)


def int32(*axes: str, description: str | None = None) -> TensorSpec:
    return _spec(axes, DType.INT32, description)


def fp32_scalar(description: str) -> TensorSpec:
    return TensorSpec(shape=None, dtype=DType.FLOAT32, description=description)


def _spec(axes: tuple[str, ...], dtype: DType, description: str | None) -> TensorSpec:
    """A description that is not given stays absent, as it always was in digests."""
    if description is None:
        return TensorSpec(shape=axes, dtype=dtype)
    return TensorSpec(shape=axes, dtype=dtype, description=description)


def reference_text(stem: str, *, causal: bool = False) -> str:
    text = (files("evaluator.problems") / "references" / f"{stem}.py").read_text("utf-8")
    return text.replace("IS_CAUSAL = False", "IS_CAUSAL = True") if causal else text
