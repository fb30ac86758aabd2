"""How a candidate's entry point is called: plain C, or TVM-FFI's packed convention, by ctypes.

`c`        void run(inputs..., outputs..., stream); tensors are pointers, scalars go by value
`tvm-ffi`  int __tvm_ffi_<symbol>(self, const TVMFFIAny* arguments, int32 count, TVMFFIAny* result)
           with tensors as DLTensor*; the stream is set with TVMFFIEnvSetStream
Source: `tvm/ffi/c_api.h`, `tvm/ffi/extra/c_env_api.h`, `dlpack/dlpack.h` of apache-tvm-ffi 0.1.15
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CPU, CUDA = 1, 2
INT, BOOL, FLOAT, TENSOR = 1, 2, 3, 7
FFI_SYMBOL_PREFIX = "__tvm_ffi_"
FFI_OBJECT_BYTES = 24

SCALARS: dict[str, Any] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "int16": ctypes.c_int16,
    "int8": ctypes.c_int8,
    "bool": ctypes.c_bool,
}
# DLPack codes: 0 signed, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2
DLPACK_TYPES: dict[str, tuple[int, int]] = {
    "float32": (2, 32),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
    "int64": (0, 64),
    "int32": (0, 32),
    "int16": (0, 16),
    "int8": (0, 8),
    "bool": (6, 8),
}

Value = int | float | bool


class EntryMissing(Exception):
    """The library has no such symbol."""


class CandidateError(Exception):
    """The entry point itself reported an error; the text is the candidate's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument; `shape` is None for a scalar."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None = None


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class ByteArray(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class AnyPayload(ctypes.Union):
    _fields_ = [
        ("v_int64", ctypes.c_int64),
        ("v_float64", ctypes.c_double),
        ("v_ptr", ctypes.c_void_p),
    ]


class AnyValue(ctypes.Structure):
    _anonymous_ = ("payload",)
    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("zero_padding", ctypes.c_uint32),
        ("payload", AnyPayload),
    ]


Entry = Callable[[Sequence[Value]], None]


def bind(
    library: ctypes.CDLL,
    symbol: str,
    binding: str,
    parameters: Sequence[Parameter],
    *,
    stream: int | None,
    ffi_library: str | None = None,
) -> Entry:
    """A callable that takes addresses for tensors and numbers for scalars, in call order.

    `stream` is None on CPU memory. Raises EntryMissing; calling may raise CandidateError.
    """
    if binding == "tvm-ffi":
        return _bind_ffi(library, symbol, parameters, stream, ffi_library or "libtvm_ffi.so")
    function = _find(library, symbol)
    function.restype = None
    types = [ctypes.c_void_p if p.shape is not None else SCALARS[p.dtype] for p in parameters]
    function.argtypes = [*types, ctypes.c_void_p]

    def call(values: Sequence[Value]) -> None:
        function(*values, stream)

    return call


def _find(library: ctypes.CDLL, symbol: str) -> Any:
    try:
        return getattr(library, symbol)
    except AttributeError:
        raise EntryMissing(f"the library does not export {symbol!r}") from None


def _bind_ffi(
    library: ctypes.CDLL,
    symbol: str,
    parameters: Sequence[Parameter],
    stream: int | None,
    ffi_library: str,
) -> Entry:
    ffi = ctypes.CDLL(ffi_library)
    function = _find(library, FFI_SYMBOL_PREFIX + symbol)
    function.restype = ctypes.c_int
    arguments = (AnyValue * len(parameters))()
    kept = [_argument(slot, p, stream) for slot, p in zip(arguments, parameters, strict=True)]
    result = AnyValue()

    def call(values: Sequence[Value]) -> None:
        for slot, tensor, value in zip(arguments, kept, values, strict=True):
            _fill(slot, tensor, value)
        if stream is not None:
            ffi.TVMFFIEnvSetStream(CUDA, 0, ctypes.c_void_p(stream), None)
        if function(None, arguments, len(parameters), ctypes.byref(result)):
            raise CandidateError(_ffi_error(ffi))

    return call


def _argument(slot: AnyValue, parameter: Parameter, stream: int | None) -> DLTensor | None:
    if parameter.shape is None:
        kind = parameter.dtype
        slot.type_index = FLOAT if kind.startswith("float") else BOOL if kind == "bool" else INT
        return None
    code, bits = DLPACK_TYPES[parameter.dtype]
    rank = len(parameter.shape)
    tensor = DLTensor(
        device_type=CPU if stream is None else CUDA, ndim=rank, code=code, bits=bits, lanes=1
    )
    tensor.shape = (ctypes.c_int64 * max(rank, 1))(*parameter.shape)
    tensor.strides = (ctypes.c_int64 * max(rank, 1))(*_strides(parameter.shape))
    slot.type_index = TENSOR
    slot.v_ptr = ctypes.addressof(tensor)
    return tensor


def _strides(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def _fill(slot: AnyValue, tensor: DLTensor | None, value: Value) -> None:
    if tensor is not None:
        tensor.data = int(value)
    elif slot.type_index == FLOAT:
        slot.v_float64 = float(value)
    else:
        slot.v_int64 = int(value)


def _ffi_error(ffi: ctypes.CDLL) -> str:
    """`kind: message` of the raised error; its cell follows the object's header."""
    raised = ctypes.c_void_p()
    ffi.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
    if not raised.value:
        return "the entry point returned an error without a text"
    kind, message = (ByteArray * 2).from_address(raised.value + FFI_OBJECT_BYTES)
    return ": ".join(_text(part) for part in (kind, message))


def _text(part: ByteArray) -> str:
    data = ctypes.string_at(part.data, min(part.size, 2000)) if part.data else b""
    return data.decode(errors="replace")
