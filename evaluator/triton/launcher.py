"""The C++ that replays a recording: cubins embedded where cuobjdump finds them, then launches.

The cubins stand in `.nv_fatbin`, so the disassembly, Nsight Compute and the sanitizer see them as
they see nvcc's. Modules are loaded and scratch memory is allocated in the first call; a tensor
map is encoded in each call, since the tensors move. A launch that CUDA refuses ends the process
in words, unless the context is broken already, which the host then reports itself.
Source: triton 3.6's own launcher, CUDA driver API 13.0.
"""

from collections.abc import Iterator, Sequence

from evaluator.problems.prototypes import Parameter
from evaluator.records.flashinfer import DType
from evaluator.triton.recording import Clear, Launch, Place, Recording, Scalar, TensorMap

SCALARS = {
    DType.FLOAT32: "float",
    DType.INT64: "int64_t",
    DType.INT32: "int32_t",
    DType.INT16: "int16_t",
    DType.INT8: "int8_t",
    DType.BOOL: "bool",
}

PREAMBLE = """\
// Replays the launches of a traced Triton candidate.
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
"""

RUNTIME = """\
namespace {
void check(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  if (cuCtxSynchronize() != CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(code, &name);
  std::fprintf(stderr, "%s: %s\\n", what, name ? name : "unknown error");
  std::fflush(stderr);
  std::abort();
}

CUfunction loaded(const unsigned char* image, const char* name, unsigned shared_bytes) {
  CUmodule module;
  CUfunction function;
  check(cuModuleLoadData(&module, image), name);
  check(cuModuleGetFunction(&function, module, name), name);
  if (shared_bytes > 48 * 1024) {
    check(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED), name);
    check(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             shared_bytes), name);
  }
  check(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), name);
  return function;
}

CUdeviceptr reserved(size_t byte_count) {
  CUdeviceptr address = 0;
  if (byte_count) check(cuMemAlloc(&address, byte_count), "scratch memory");
  return address;
}

CUtensorMap tensor_map(CUdeviceptr base, int type, int rank, const uint64_t* extents,
                       const uint64_t* byte_steps, const uint32_t* box, int swizzle,
                       bool fill_nan) {
  alignas(64) CUtensorMap map;
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  check(cuTensorMapEncodeTiled(
            &map, static_cast<CUtensorMapDataType>(type), rank, reinterpret_cast<void*>(base),
            extents, byte_steps, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            static_cast<CUtensorMapSwizzle>(swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            fill_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                     : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "tensor map");
  return map;
}

void launch(CUfunction function, const char* name, CUstream stream, unsigned x, unsigned y,
            unsigned z, unsigned threads, unsigned ctas, unsigned shared_bytes, bool cooperative,
            bool dependent, void** arguments) {
  CUlaunchAttribute attributes[4] = {};
  unsigned count = 0;
  if (dependent) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (cooperative) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  if (ctas > 1) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim.x = ctas;
    attributes[count].value.clusterDim.y = 1;
    attributes[count++].value.clusterDim.z = 1;
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    attributes[count++].value.clusterSchedulingPolicyPreference =
        CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  }
  CUlaunchConfig config = {};
  config.gridDimX = x, config.gridDimY = y, config.gridDimZ = z;
  config.blockDimX = threads, config.blockDimY = 1, config.blockDimZ = 1;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  check(cuLaunchKernelEx(&config, function, arguments, nullptr), name);
}
"""


def launcher(recording: Recording, parameters: Sequence[Parameter], symbol: str) -> str:
    """The whole unit. `parameters` are the problem's, as the C binding passes them."""
    lines = [
        PREAMBLE,
        *_images(recording),
        RUNTIME,
        *_state(recording),
        "}  // namespace",
        "",
        f'extern "C" void {symbol}({_prototype(parameters)}) {{',
        "  static State state;",
        f"  const CUdeviceptr parameter[] = {{{_addresses(parameters)}}};",
        "  (void)parameter;",
    ]
    for operation in recording.operations:
        if isinstance(operation, Launch):
            lines += _launch(operation, recording)
        else:
            lines += _clear(operation)
    return "\n".join([*lines, "}"]) + "\n"


def _images(recording: Recording) -> Iterator[str]:
    yield 'asm(".section .nv_fatbin, \\"a\\"\\n"'
    for number in range(len(recording.kernels)):
        name = f"ptxboard_image_{number}"
        yield f'    ".balign 8\\n.globl {name}\\n.hidden {name}\\n"'
        yield f'    "{name}: .incbin \\"../out/kernel_{number}.fatbin\\"\\n"'
    yield '    ".text\\n");'
    for number in range(len(recording.kernels)):
        yield f'extern "C" const unsigned char ptxboard_image_{number}[];'
    yield ""


def _state(recording: Recording) -> Iterator[str]:
    yield "struct State {"
    yield f"  CUfunction kernel[{len(recording.kernels)}];"
    yield f"  CUdeviceptr scratch[{max(1, len(recording.scratch))}];"
    yield "  State() : kernel{}, scratch{} {"
    for number, kernel in enumerate(recording.kernels):
        image, shared = f"ptxboard_image_{number}", kernel.shared_bytes
        yield f'    kernel[{number}] = loaded({image}, "{kernel.name}", {shared});'
    for number, byte_count in enumerate(recording.scratch):
        yield f"    scratch[{number}] = reserved({byte_count});"
    yield "  }"
    yield "};"


def _prototype(parameters: Sequence[Parameter]) -> str:
    listed = []
    for number, one in enumerate(parameters):
        if one.is_scalar:
            listed.append(f"{SCALARS[one.dtype]} p{number}")
        else:
            listed.append(f"{'' if one.is_output else 'const '}void* p{number}")
    return ", ".join([*listed, "CUstream stream"])


def _addresses(parameters: Sequence[Parameter]) -> str:
    numbers = [number for number, one in enumerate(parameters) if not one.is_scalar]
    return ", ".join(f"reinterpret_cast<CUdeviceptr>(p{number})" for number in numbers)


def _address(place: Place) -> str:
    if place.storage == "none":
        return "CUdeviceptr{0}"
    array = "parameter" if place.storage == "parameter" else "state.scratch"
    return f"{array}[{place.number}] + {place.offset}u"


def _clear(operation: Clear) -> list[str]:
    if operation.storage == "none" or operation.byte_count == 0:
        return []
    address, count = _address(operation), operation.byte_count
    return [f'  check(cuMemsetD8Async({address}, 0, {count}u, stream), "clearing");']


def _launch(operation: Launch, recording: Recording) -> list[str]:
    kernel = recording.kernels[operation.kernel]
    lines = ["  {"]
    for number, argument in enumerate(operation.arguments):
        if isinstance(argument, Scalar):
            lines.append(f"    uint{argument.width}_t a{number} = {argument.bits}u;")
        elif isinstance(argument, TensorMap):
            lines += [f"    {line}" for line in _tensor_map(number, argument)]
        else:
            lines.append(f"    CUdeviceptr a{number} = {_address(argument)};")
    listed = ", ".join(f"&a{number}" for number in range(len(operation.arguments)))
    x, y, z = operation.blocks
    flags = [str(flag).lower() for flag in (operation.cooperative, operation.dependent)]
    sizes = f"{x}u, {y}u, {z}u, {operation.warps * 32}u, {operation.ctas}u, {kernel.shared_bytes}u"
    lines += [
        f"    void* arguments[] = {{{listed or 'nullptr'}}};",
        f'    launch(state.kernel[{operation.kernel}], "{kernel.name}", stream, {sizes},',
        f"           {', '.join(flags)}, arguments);",
        "  }",
    ]
    return lines


def _tensor_map(number: int, described: TensorMap) -> Iterator[str]:
    """Fastest axis first, strides in bytes, the last one twice: as the driver wants them."""
    rank = len(described.shape)
    extents = list(reversed(described.shape))
    steps = [step * described.element_bytes for step in reversed(described.strides[:-1])]
    steps.append(extents[-1] * (steps[-1] if steps else described.element_bytes))
    box = list(reversed(described.box))
    yield f"const uint64_t extents{number}[] = {{{_numbers(extents)}}};"
    yield f"const uint64_t steps{number}[] = {{{_numbers(steps)}}};"
    yield f"const uint32_t box{number}[] = {{{_numbers(box)}}};"
    yield (
        f"alignas(64) CUtensorMap a{number} = tensor_map({_address(described)}, "
        f"{described.element_type}, {rank}, extents{number}, steps{number}, box{number}, "
        f"{described.swizzle}, {str(described.fill_nan).lower()});"
    )


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(f"{value}u" for value in values)
