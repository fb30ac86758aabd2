"""What a source file must keep to, as the stages of the evaluation hold it to that."""

from collections.abc import Sequence

from evaluator.records.candidate import MAX_SOURCE_BYTES, Binding
from evaluator.targets import Target
from evaluator.triton.tracer.rules import OFFERED_MODULES, OFFERED_TORCH

COMPILE_SECONDS = 120
CALL_SECONDS = 30
LIBRARIES = (
    "cuBLAS",
    "cuDNN",
    "CUTLASS",
    "CuTe",
    "Thrust",
    "CUB",
    "cuFFT",
    "cuSOLVER",
    "cuSPARSE",
    "cuTENSOR",
)
FENCE_TAG = {"cuda": "cuda", "cpp": "cpp", "triton": "python"}

COMMON = (
    "Outputs are allocated already and hold NaN: write every element, and never read or add to "
    "what was there. Inputs are const.",
    "Compute everything in every call. The contents and the addresses of inputs and outputs "
    "change from call to call: keep no result and no address of an earlier call.",
    "Every call with equal inputs does the same work and gives the same outputs within the "
    "tolerance.",
    "The sizes below are fixed: make them compile-time constants.",
    "There is no network and no file to read. What the file prints is shown to you, and never "
    "read for a verdict.",
)
ON_STREAM = (
    "Launch all work on the given stream, do not wait for it, and let all of it end with the "
    "call: other streams must be joined to it. Scratch memory may be allocated in the first call "
    "and kept.",
    f"A call that has not ended after {CALL_SECONDS} s is stopped.",
    "Check every result of a CUDA or driver call, and print the error.",
)
DRIVER = (
    "libcuda is not linked: take driver functions such as cuTensorMapEncodeTiled through "
    "cudaGetDriverEntryPointByVersion. A tensor map holds an address: encode it anew in each call.",
)
TRITON = (
    "`run` is plain Python that launches `@triton.jit` kernels as `kernel[grid](...)` on the "
    "tensors it gets: inputs in order, then outputs. It runs once while the file is built, "
    "without a GPU: the launches are recorded and repeated in each call, so they must not depend "
    "on values in tensors.",
    f"{OFFERED_MODULES[0].upper()}{OFFERED_MODULES[1:]}; {OFFERED_TORCH}. No library does the "
    "work. Inline PTX through Triton is allowed.",
    "No autotuning over several configurations: choose one.",
)


def requirements(*, target: Target, language: str, binding: str, entry_point: str) -> list[str]:
    """One requirement an item, the entry point first."""
    items = [
        *_entry(language, binding, entry_point, target.is_gpu),
        f"One file, at most {MAX_SOURCE_BYTES} bytes, complete: no diffs and no omissions.",
    ]
    if language == "triton":
        return [*items, *TRITON, *COMMON]
    items.append(_build(target, language, binding))
    items.append(_libraries(target))
    items += COMMON
    return [*items, *ON_STREAM, *DRIVER] if target.is_gpu else items


def _entry(language: str, binding: str, name: str, is_gpu: bool) -> Sequence[str]:
    order = "all inputs in the order of the definition, then all outputs"
    if language == "triton":
        return (f"Define `def {name}(...)` at the top level; it takes {order}.",)
    if binding == Binding.TVM_FFI:
        return (
            f"Export the entry point with `TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, function)`; the "
            f"function takes {order} as `tvm::ffi::TensorView`, scalars by value, and gets its "
            "stream from `TVMFFIEnvGetStream`.",
        )
    stream = ", then the stream" if is_gpu else ""
    return (
        f'Define `extern "C" void {name}(...)` once, with the prototype of the task: {order}'
        f"{stream}; pointers may be typed otherwise, scalars are passed by value.",
    )


def _build(target: Target, language: str, binding: str) -> str:
    command = "g++ -O3 -march=native -std=c++17 -fPIC -shared"
    if target.is_gpu:
        command = f"nvcc -O3 -std=c++17 -lineinfo -gencode {target.gencode} -shared"
        command += " -ltvm_ffi" if binding == Binding.TVM_FFI else ""
    return f"It is built with `{command}`, within {COMPILE_SECONDS} s."


def _libraries(target: Target) -> str:
    own = "the C++ standard library"
    headers = f"the CUDA toolkit's own headers and {own}" if target.is_gpu else own
    banned = ", ".join(LIBRARIES)
    return (
        f"Include only {headers}. Libraries that do the work are not allowed, neither their "
        f"headers nor by loading them: {banned}; torch headers are not there."
    )
