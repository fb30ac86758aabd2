"""A module that answers to `import torch`: dtypes, scratch memory, device properties, no more."""

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

from evaluator.triton.tracer.rules import NO_WORK, OFFERED_TORCH
from evaluator.triton.tracer.tensors import (
    DTYPES,
    Device,
    DType,
    Memory,
    RefusedName,
    Size,
    Tensor,
    flat,
    strides_of,
)

ALIASES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}


@dataclass(frozen=True, slots=True)
class Properties:
    """Of the device that is built for."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int = 32
    total_memory: int = 80 << 30
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    regs_per_multiprocessor: int = 65536
    max_threads_per_multi_processor: int = 2048


class StandIn(ModuleType):
    """Says what it has when it is asked for more."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RefusedName(f"{self.__name__}.{name}: {NO_WORK} ({OFFERED_TORCH})")


def install(memory: Memory, properties: Properties) -> ModuleType:
    """Every later `import torch` in this process gets the stand-in."""
    torch, cuda = StandIn("torch"), StandIn("torch.cuda")
    torch.__dict__.update(DTYPES)
    torch.__dict__.update({alias: DTYPES[name] for alias, name in ALIASES.items()})
    torch.__dict__.update(Tensor=Tensor, Size=Size, dtype=DType, device=_device, cuda=cuda)
    torch.__dict__.update(_allocators(memory))
    cuda.__dict__.update(
        current_device=lambda: 0,
        get_device_properties=lambda device=None: properties,
        device=_device,
    )
    sys.modules["torch"], sys.modules["torch.cuda"] = torch, cuda
    return torch


def _device(kind: Any = "cuda", index: int = 0) -> Device:
    return kind if isinstance(kind, Device) else Device()


def _allocators(memory: Memory) -> dict[str, Any]:
    def empty(*size: Any, dtype: DType | None = None, **_: Any) -> Tensor:
        shape = Size(int(extent) for extent in flat(size))
        return empty_strided(shape, strides_of(shape), dtype=dtype)

    def empty_strided(size: Any, stride: Any, *, dtype: DType | None = None, **_: Any) -> Tensor:
        shape, kind = Size(size), dtype or DTYPES["float32"]
        reach = 1 + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
        count = 0 if 0 in shape else reach
        return Tensor(memory, memory.scratch(count * kind.itemsize), kind, shape, tuple(stride))

    def empty_like(other: Tensor, *, dtype: DType | None = None, **_: Any) -> Tensor:
        return empty(*other.shape, dtype=dtype or other.dtype)

    def zeros(*size: Any, dtype: DType | None = None, **_: Any) -> Tensor:
        return empty(*size, dtype=dtype).zero_()

    def zeros_like(other: Tensor, *, dtype: DType | None = None, **_: Any) -> Tensor:
        return empty_like(other, dtype=dtype).zero_()

    made = (empty, empty_strided, empty_like, zeros, zeros_like)
    return {function.__name__: function for function in made}
