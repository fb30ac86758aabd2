"""Where the buffers are: the judge's arena mapped here, or allocations of our own."""

import ctypes
import mmap
import random
import struct
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from evaluator.host.binding import DLPACK_TYPES, Parameter, Value
from evaluator.host.cuda import Driver

PATTERN_BYTES = 1 << 20


def map_memfd(descriptor: int, byte_count: int) -> tuple[int, Any]:
    """Address of a shared mapping, and the object that keeps it alive."""
    mapping = mmap.mmap(descriptor, byte_count)
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping)), mapping


def byte_count(parameter: Parameter) -> int:
    """Bytes of a tensor parameter; 0 for a scalar."""
    if parameter.shape is None:
        return 0
    return prod(parameter.shape) * DLPACK_TYPES[parameter.dtype][1] // 8


def own_buffers(
    driver: Driver, parameters: Sequence[Parameter], seed: int, contents: Mapping[str, bytes]
) -> list[Value | None]:
    """One allocation of the exact size for each tensor: its `contents`, or small finite values.

    Made with copies only: no kernel but the candidate's is launched in this process.
    """
    source = random.Random(seed)  # noqa: S311  values only have to be finite and uneven
    return [
        _own_buffer(driver, parameter, contents.get(parameter.name), source)
        for parameter in parameters
    ]


def _own_buffer(
    driver: Driver, parameter: Parameter, content: bytes | None, source: random.Random
) -> int | None:
    if parameter.shape is None:
        return None
    size = max(byte_count(parameter), 1)
    address = driver.allocate(size)
    pattern = content or _pattern(parameter.dtype, source)[:size]
    driver.copy_in(address, pattern)
    filled = len(pattern)
    while filled < size:
        step = min(filled, size - filled)
        driver.copy_on_device(address + filled, address, step)
        filled += step
    return address


def _pattern(dtype: str, source: random.Random) -> bytes:
    """PATTERN_BYTES of values in about [-1, 1] for floats, 0 or 1 for whole numbers."""
    count = PATTERN_BYTES * 8 // DLPACK_TYPES[dtype][1] // 64
    if dtype == "float32":
        block = struct.pack(f"{count}f", *(source.uniform(-1, 1) for _ in range(count)))
    elif dtype == "float16":
        block = struct.pack(f"{count}e", *(source.uniform(-1, 1) for _ in range(count)))
    elif dtype == "bfloat16":
        exact = struct.pack(f"{count}f", *(source.uniform(-1, 1) for _ in range(count)))
        block = b"".join(exact[at + 2 : at + 4] for at in range(0, len(exact), 4))
    elif dtype.startswith("float8"):
        block = bytes(source.choice((0x30, 0x38, 0xB0, 0xB8)) for _ in range(count))
    else:
        width = DLPACK_TYPES[dtype][1] // 8
        block = b"".join(source.getrandbits(1).to_bytes(width, "little") for _ in range(count))
    return block * 64
