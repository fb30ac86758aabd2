"""An entry point's parameters and its text, ready to copy, for each binding and language."""

from dataclasses import dataclass

from evaluator.records.candidate import Binding, Language
from evaluator.records.flashinfer import DType, TensorSpec
from evaluator.records.problem import Problem

CUDA_TYPES = {
    DType.FLOAT32: "float",
    DType.FLOAT16: "__half",
    DType.BFLOAT16: "__nv_bfloat16",
    DType.FLOAT8_E4M3FN: "__nv_fp8_e4m3",
    DType.FLOAT8_E5M2: "__nv_fp8_e5m2",
    DType.FLOAT4_E2M1: "uint8_t",
    DType.INT64: "int64_t",
    DType.INT32: "int32_t",
    DType.INT16: "int16_t",
    DType.INT8: "int8_t",
    DType.BOOL: "bool",
}
CPP_TYPES = CUDA_TYPES | {
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    DType.FLOAT8_E4M3FN: "uint8_t",
    DType.FLOAT8_E5M2: "uint8_t",
}
TYPE_HEADERS = {
    "__half": "cuda_fp16.h",
    "__nv_bfloat16": "cuda_bf16.h",
    "__nv_fp8_e4m3": "cuda_fp8.h",
    "__nv_fp8_e5m2": "cuda_fp8.h",
}
C_NOTE = "    // Outputs are allocated already: write every element of them."
TRITON_NOTES = (
    "    # Called once, when it is built: tensors have shapes and no values, only launches count.",
    "    # Outputs are allocated already: write every element of them.",
)
STREAM_NOTE = "    // Launch every kernel on `stream`; do not wait for it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """`shape` in elements, with the workload's sizes; () for a scalar passed by value."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    is_output: bool
    is_scalar: bool


def parameters(problem: Problem) -> tuple[Parameter, ...]:
    """What the entry point takes: inputs in definition order, then outputs."""
    definition, sizes = problem.definition, axis_sizes(problem)
    inputs = [_parameter(name, spec, sizes) for name, spec in definition.inputs.items()]
    outputs = [
        _parameter(name, spec, sizes, is_output=True) for name, spec in definition.outputs.items()
    ]
    return (*inputs, *outputs)


def axis_sizes(problem: Problem) -> dict[str, int]:
    """Every axis with its size: constants from the definition, the rest from the workload."""
    constants = {
        name: axis.value for name, axis in problem.definition.axes.items() if axis.type == "const"
    }
    return {**problem.workload.axes, **constants}


def _parameter(
    name: str, spec: TensorSpec, sizes: dict[str, int], *, is_output: bool = False
) -> Parameter:
    axes = spec.shape or ()
    return Parameter(
        name=name,
        dtype=spec.dtype,
        shape=tuple(sizes[axis] for axis in axes),
        axes=axes,
        is_output=is_output,
        is_scalar=spec.shape is None,
    )


def c_type(parameter: Parameter, language: Language) -> str:
    """The parameter's type in the C prototype, such as `const float*`."""
    types = CUDA_TYPES if language is Language.CUDA else CPP_TYPES
    if parameter.is_scalar:
        return types[parameter.dtype]
    return f"{'' if parameter.is_output else 'const '}{types[parameter.dtype]}*"


def prototype(
    problem: Problem, binding: Binding | str = Binding.C, language: Language | str = Language.CUDA
) -> str:
    """A whole source file that compiles as it stands and computes nothing yet.

    Raises ValueError for a binding that the language does not have.
    """
    binding, language = Binding(binding), Language(language)
    if language is Language.TRITON and binding is Binding.C:
        return _triton(problem)
    if binding is Binding.TVM_FFI and language is not Language.CUDA:
        raise ValueError(f"binding 'tvm-ffi' is for language 'cuda'; seen: {language.value!r}")
    write = _tvm_ffi if binding is Binding.TVM_FFI else _c
    lines = [
        *_includes(problem, binding, language),
        "",
        *_comment(problem),
        *write(problem, language),
    ]
    return "\n".join(lines) + "\n"


def _includes(problem: Problem, binding: Binding, language: Language) -> list[str]:
    types = CUDA_TYPES if language is Language.CUDA else CPP_TYPES
    used = {types[parameter.dtype] for parameter in parameters(problem)}
    headers = {TYPE_HEADERS[name] for name in used if name in TYPE_HEADERS}
    if any(name.endswith("_t") for name in used):
        headers.add("cstdint")
    if language is Language.CUDA:
        headers.add("cuda_runtime.h")
    if binding is Binding.TVM_FFI:
        headers |= {"tvm/ffi/extra/c_env_api.h", "tvm/ffi/tvm_ffi.h"}
    return [f"#include <{header}>" for header in sorted(headers)]


def _comment(problem: Problem, mark: str = "//") -> list[str]:
    lines = [f"{mark} {problem.name}: {problem.title}"]
    for parameter in parameters(problem):
        role = "output" if parameter.is_output else "input"
        pairs = zip(parameter.axes, parameter.shape, strict=True)
        extents = ", ".join(f"{axis}={size}" for axis, size in pairs)
        kind = "scalar" if parameter.is_scalar else f"[{extents}]"
        lines.append(f"{mark}   {parameter.name}: {role}, {parameter.dtype.value} {kind}")
    return lines


def _c(problem: Problem, language: Language) -> list[str]:
    given = [f"{c_type(item, language)} {item.name}" for item in parameters(problem)]
    notes = [C_NOTE]
    if language is Language.CUDA:
        given.append("cudaStream_t stream")
        notes = [STREAM_NOTE, C_NOTE]
    return ['extern "C" void run(', *_listed(given), ") {", *notes, "}"]


def _triton(problem: Problem) -> str:
    taken = [item.name for item in parameters(problem)]
    output = next(item for item in parameters(problem) if item.is_output)
    lines = [
        *_comment(problem, "#"),
        "import triton",
        "import triton.language as tl",
        "",
        "",
        "@triton.jit",
        "def kernel(output, count, BLOCK: tl.constexpr):",
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "    tl.store(output + at, tl.zeros((BLOCK,), tl.float32), mask=at < count)",
        "",
        "",
        f"def run({', '.join(taken)}):",
        *TRITON_NOTES,
        f"    count = {output.name}.numel()",
        f"    kernel[(triton.cdiv(count, 1024),)]({output.name}, count, BLOCK=1024)",
    ]
    return "\n".join(lines) + "\n"


def _listed(items: list[str]) -> list[str]:
    return [f"    {item}," for item in items[:-1]] + [f"    {items[-1]}"]


def _tvm_ffi(problem: Problem, language: Language) -> list[str]:
    taken = parameters(problem)
    given = [
        f"{CUDA_TYPES[item.dtype] if item.is_scalar else 'tvm::ffi::TensorView'} {item.name}"
        for item in taken
    ]
    device = f"{next(item.name for item in taken if not item.is_scalar)}.device()"
    pointers = [_pointer(item, language) for item in taken if not item.is_scalar]
    return [
        "void run_tensors(",
        *_listed(given),
        ") {",
        f"    const DLDevice device = {device};",
        "    cudaSetDevice(device.device_id);",
        "    auto stream = static_cast<cudaStream_t>(",
        "        TVMFFIEnvGetStream(device.device_type, device.device_id));",
        *pointers,
        STREAM_NOTE,
        C_NOTE,
        *[f"    (void){item.name}_data;" for item in taken if not item.is_scalar],
        "    (void)stream;",
        "}",
        "",
        "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run_tensors);",
    ]


def _pointer(item: Parameter, language: Language) -> str:
    typed = c_type(item, language)
    return f"    auto* {item.name}_data = static_cast<{typed}>({item.name}.data_ptr());"
