"""FlashInfer-Trace records, as its schema has them: definition, workload, solution, trace.

Text -> record -> text is lossless: unknown fields, nulls, absent defaults, integers against
floats and the order of inputs and outputs (which is the call order) all stay. `read` tells
every broken rule at once as an InvalidRecord. Two answers differ from FlashInfer's on purpose:
a vendor library among the dependencies is refused, and a NaN or a repeated key is no JSON.
"""

import ast
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, StrictBool, StrictInt

from evaluator.records.candidate import check_source_path, path_clashes
from evaluator.records.validation import Breach, Location, OpenRecord, Parts
from evaluator.records.validation import FieldProblem as FieldProblem
from evaluator.records.validation import InvalidRecord as InvalidRecord
from evaluator.records.validation import read as read
from evaluator.records.validation import write as write


class DType(StrEnum):
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT4_E2M1 = "float4_e2m1"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    BOOL = "bool"


class SolutionLanguage(StrEnum):
    PYTHON = "python"
    TRITON = "triton"
    CPP = "cpp"
    CUDA = "cuda"
    TILELANG = "tilelang"


class SolutionBinding(StrEnum):
    TVM_FFI = "tvm-ffi"
    TORCH = "torch"


DEFAULT_BINDING = SolutionBinding.TVM_FFI
VENDOR_LIBRARY = re.compile(
    r"^(lib)?(nvidia[-_])?(cublas|cudnn|cutlass|cute\b|cusparse|cusolver|cufft|thrust\b|cub\b)",
    re.IGNORECASE,
)


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return value


def _size(value: Any) -> int | float:
    if _number(value) < 0:
        raise ValueError("expected a number of at least 0")
    return _number(value)


def _error_size(value: Any) -> int | float | str | None:
    if value is None or value in ("NaN", "Infinity", "-Infinity"):
        return value  # type: ignore[no-any-return]
    return _size(value)


def _scalar(value: Any) -> int | float | bool:
    if not isinstance(value, bool | int | float):
        raise ValueError("expected a number, true or false")
    return value


Size = Annotated[int | float, PlainValidator(_size)]
ErrorSize = Annotated[int | float | str | None, PlainValidator(_error_size)]
Scalar = Annotated[int | float | bool, PlainValidator(_scalar)]
Name = Annotated[str, Field(min_length=1)]
Extent = Annotated[StrictInt, Field(ge=0)]


class ConstAxis(OpenRecord):
    type: Literal["const"]
    value: Extent
    description: str | None = None


class VarAxis(OpenRecord):
    type: Literal["var"]
    description: str | None = None


Axis = Annotated[ConstAxis | VarAxis, Field(discriminator="type")]


class TensorSpec(OpenRecord):
    """`shape` names axes; None is a scalar passed by value."""

    shape: tuple[str, ...] | None
    dtype: DType
    description: str | None = None


class Definition(OpenRecord):
    """An operator: inputs and outputs in call order, and a reference `run` that returns values."""

    name: Name
    op_type: Name
    axes: dict[str, Axis]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    reference: str
    tags: tuple[str, ...] = ()
    description: str | None = None
    constraints: tuple[str, ...] = ()

    @classmethod
    def breaches(cls, value: Parts) -> Iterable[Breach]:
        yield from _shape_breaches(value)
        yield from _name_breaches(value)
        yield from _reference_breaches(value)
        yield from _constraint_breaches(value)

    @property
    def call_order(self) -> tuple[str, ...]:
        return (*self.inputs, *self.outputs)


def _shape_breaches(value: Parts) -> Iterable[Breach]:
    axes = [name for name, _ in value.items("axes")]
    for side in ("inputs", "outputs"):
        for name, spec in value.items(side):
            for axis in Parts(spec).elements("shape"):
                if isinstance(axis, str) and axis not in axes:
                    known = ", ".join(axes) or "none"
                    rule = f"axis {axis!r} is not among the definition's axes: {known}"
                    yield Breach(location=(side, name, "shape"), rule=rule, seen=axis)


def _name_breaches(value: Parts) -> Iterable[Breach]:
    inputs = {name for name, _ in value.items("inputs")}
    for name, _ in value.items("outputs"):
        if name in inputs:
            rule = f"output {name!r} has the name of an input; names must differ"
            yield Breach(location=("outputs", name), rule=rule, seen=name)


def _reference_breaches(value: Parts) -> Iterable[Breach]:
    reference = value.text("reference")
    if reference is None:
        return
    location: Location = ("reference",)
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        rule = f"must be valid Python: {_python_fault(error)}"
        yield Breach(location=location, rule=rule, seen=reference)
        return
    if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
        rule = "must define a function 'run' at its top level"
        yield Breach(location=location, rule=rule, seen=reference)


def _constraint_breaches(value: Parts) -> Iterable[Breach]:
    for number, constraint in enumerate(value.elements("constraints")):
        if not isinstance(constraint, str):
            continue
        try:
            ast.parse(constraint, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            rule = f"must be a Python expression: {_python_fault(error)}"
            yield Breach(location=("constraints", number), rule=rule, seen=constraint)


def _python_fault(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} at line {error.lineno}"
    return str(error) or type(error).__name__


class RandomInput(OpenRecord):
    type: Literal["random"]


class ScalarInput(OpenRecord):
    type: Literal["scalar"]
    value: Scalar


class SafetensorsInput(OpenRecord):
    """`path` is relative to the trace set's root."""

    type: Literal["safetensors"]
    path: Name
    tensor_key: Name


InputSpec = Annotated[RandomInput | ScalarInput | SafetensorsInput, Field(discriminator="type")]


class Workload(OpenRecord):
    """Sizes of the variable axes and where each input comes from; a missing input is random."""

    axes: dict[str, Extent]
    inputs: dict[str, InputSpec]
    uuid: Name
    outputs: dict[str, SafetensorsInput] | None = None


class SourceFile(OpenRecord):
    path: str
    content: str

    @classmethod
    def breaches(cls, value: Parts) -> Iterable[Breach]:
        path = value.text("path")
        try:
            if path is not None:
                check_source_path(path)
        except ValueError as error:
            yield Breach(location=("path",), rule=str(error), seen=path)


class BuildSpec(OpenRecord):
    """How to build a solution. `binding` missing or null means tvm-ffi, as FlashInfer has it."""

    language: SolutionLanguage
    target_hardware: tuple[str, ...] = Field(min_length=1)
    entry_point: str
    dependencies: tuple[str, ...] = ()
    destination_passing_style: StrictBool = True
    binding: SolutionBinding | None = None

    @classmethod
    def breaches(cls, value: Parts) -> Iterable[Breach]:
        entry_point = value.text("entry_point")
        if entry_point is not None and not _is_entry_point(entry_point):
            rule = "expected 'file::symbol', such as 'kernel.cu::run', with exactly one '::'"
            yield Breach(location=("entry_point",), rule=rule, seen=entry_point)
        for number, name in enumerate(value.elements("dependencies")):
            if isinstance(name, str) and VENDOR_LIBRARY.match(name.strip()):
                rule = f"vendor libraries are banned: {name!r}; write the kernel itself"
                yield Breach(location=("dependencies", number), rule=rule, seen=name)

    @property
    def entry_file(self) -> str:
        return check_source_path(self.entry_point.partition("::")[0])

    @property
    def entry_symbol(self) -> str:
        return self.entry_point.partition("::")[2]

    @property
    def effective_binding(self) -> SolutionBinding:
        return self.binding or DEFAULT_BINDING


def _is_entry_point(text: str) -> bool:
    file, _, symbol = text.partition("::")
    return text.count("::") == 1 and bool(file) and bool(symbol)


class Solution(OpenRecord):
    """One author's implementation of a definition."""

    name: Name
    definition: Name
    author: Name
    spec: BuildSpec
    sources: tuple[SourceFile, ...] = Field(min_length=1)
    description: str | None = None

    @classmethod
    def breaches(cls, value: Parts) -> Iterable[Breach]:
        paths = [_normal(Parts(source).text("path")) for source in value.elements("sources")]
        for number, rule in path_clashes(paths):
            yield Breach(location=("sources", number, "path"), rule=rule, seen=paths[number])
        yield from _entry_breaches(value, [path for path in paths if path is not None])


def _entry_breaches(value: Parts, paths: list[str]) -> Iterable[Breach]:
    entry_point = value.under("spec").text("entry_point")
    if entry_point is None or not _is_entry_point(entry_point):
        return
    file = entry_point.partition("::")[0]
    if _normal(file) not in paths:
        rule = f"entry file {file!r} is not among the sources: {', '.join(paths) or 'none'}"
        yield Breach(location=("spec", "entry_point"), rule=rule, seen=entry_point)


def _normal(path: str | None) -> str | None:
    try:
        return check_source_path(path) if path is not None else None
    except ValueError:
        return None


class EvaluationStatus(StrEnum):
    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    TIMEOUT = "TIMEOUT"


class Correctness(OpenRecord):
    """Null where nothing finite could be compared; FlashInfer's own writer uses strings there."""

    max_relative_error: ErrorSize = 0.0
    max_absolute_error: ErrorSize = 0.0
    extra: dict[str, Any] | None = None


class Performance(OpenRecord):
    latency_ms: Size = 0.0
    reference_latency_ms: Size = 0.0
    speedup_factor: Size = 0.0


class TraceEnvironment(OpenRecord):
    hardware: Name
    libs: dict[str, str] = {}


class Evaluation(OpenRecord):
    """PASSED carries correctness and performance, INCORRECT_NUMERICAL correctness, others none."""

    status: EvaluationStatus
    environment: TraceEnvironment
    timestamp: Name
    log: str = ""
    correctness: Correctness | None = None
    performance: Performance | None = None

    @classmethod
    def breaches(cls, value: Parts) -> Iterable[Breach]:
        status = value.text("status")
        if status not in list(EvaluationStatus):
            return
        for payload, carriers in PAYLOAD_CARRIERS.items():
            present, wanted = value.get(payload) is not None, status in carriers
            if present != wanted:
                verb = "requires" if wanted else "forbids"
                seen = value.get(payload)
                rule = f"status {status} {verb} {payload}"
                yield Breach(location=(payload,), rule=rule, seen=seen)


PAYLOAD_CARRIERS = {
    "correctness": (EvaluationStatus.PASSED, EvaluationStatus.INCORRECT_NUMERICAL),
    "performance": (EvaluationStatus.PASSED,),
}


class Trace(OpenRecord):
    """A solution's evaluation on a workload; without both it only names the workload."""

    definition: Name
    workload: Workload
    solution: str | None = None
    evaluation: Evaluation | None = None

    @property
    def is_workload_trace(self) -> bool:
        return self.solution is None and self.evaluation is None
