"""Both bindings called by ctypes, on CPU memory, with libraries built here."""

import ctypes
import struct
import subprocess

import pytest

from evaluator.host.binding import CandidateError, EntryMissing, Parameter, bind
from evaluator.host.memory import _pattern, byte_count
from evaluator.judge.confinement import ffi_library
from evaluator.toolchain import Toolchain

VECTOR = Parameter(name="x", dtype="float32", shape=(2, 3))
OUT = Parameter(name="y", dtype="float32", shape=(2, 3))
SCALE = Parameter(name="scale", dtype="float32")
COUNT = Parameter(name="count", dtype="int32")
PLAIN = """
extern "C" void run(const float* x, float scale, int count, float* y, void* stream) {
  for (int i = 0; i < count; ++i) y[i] = scale * x[i];
  if (stream) y[0] = -1;
}
"""
PACKED = """
#include <tvm/ffi/tvm_ffi.h>
void launch(tvm::ffi::TensorView x, double scale, int count, tvm::ffi::TensorView y) {
  if (count < 0) TVM_FFI_THROW(ValueError) << "count is " << count;
  if (x.ndim() != 2 || x.size(1) != 3 || x.dtype().bits != 32) return;
  for (int i = 0; i < count; ++i)
    static_cast<float*>(y.data_ptr())[i] = scale * static_cast<const float*>(x.data_ptr())[i];
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, launch);
"""


def built(folder, text: str, *options: str) -> ctypes.CDLL:
    (folder / "k.cpp").write_text(text)
    command = ["g++", "-O1", "-std=c++17", "-fPIC", "-shared", "-o", "k.so", "k.cpp", *options]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "k.so"))


def test_plain_c_takes_pointers_and_scalars_by_value(tmp_path):
    entry = bind(built(tmp_path, PLAIN), "run", "c", (VECTOR, SCALE, COUNT, OUT), stream=None)
    given, taken = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6), (ctypes.c_float * 6)()
    entry([ctypes.addressof(given), 0.5, 6, ctypes.addressof(taken)])
    assert list(taken) == [0.5, 1, 1.5, 2, 2.5, 3]


def test_tvm_ffi_takes_tensors_with_shape_and_dtype_and_tells_its_errors(tmp_path):
    ffi = Toolchain.find().need_tvm_ffi()
    library = built(
        tmp_path, PACKED, f"-I{ffi.include}", f"-L{ffi.lib}", "-ltvm_ffi", f"-Wl,-rpath,{ffi.lib}"
    )
    parameters = (VECTOR, SCALE, COUNT, OUT)
    entry = bind(library, "run", "tvm-ffi", parameters, stream=None, ffi_library=str(ffi_library()))
    given, taken = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6), (ctypes.c_float * 6)()
    places = ctypes.addressof(given), ctypes.addressof(taken)
    entry([places[0], 2.0, 6, places[1]])
    assert list(taken) == [2, 4, 6, 8, 10, 12]
    with pytest.raises(CandidateError, match="ValueError: count is -3"):
        entry([places[0], 2.0, -3, places[1]])


@pytest.mark.parametrize("symbol", ["launch", "run2"])
def test_a_symbol_that_is_not_there_is_named(tmp_path, symbol):
    with pytest.raises(EntryMissing, match=f"does not export '{symbol}'"):
        bind(built(tmp_path, PLAIN), symbol, "c", (VECTOR,), stream=None)


@pytest.mark.parametrize(
    ("dtype", "width", "code"), [("float32", 4, "f"), ("float16", 2, "e"), ("int32", 4, "i")]
)
def test_made_up_inputs_are_small_and_finite(dtype, width, code):
    import random

    values = _pattern(dtype, random.Random(1))
    numbers = struct.unpack(f"{len(values) // width}{code}", values)
    assert len(values) == 1 << 20
    assert all(abs(number) <= 1 for number in numbers)
    assert len(set(numbers)) > 1


def test_bytes_of_a_tensor_and_of_a_scalar():
    assert byte_count(VECTOR) == 24
    assert byte_count(SCALE) == 0
    assert byte_count(Parameter(name="b", dtype="bfloat16", shape=(5, 7))) == 70
