"""One allocation for a job's buffers, shared with the host: slots of inputs and outputs.

A slot holds every tensor of the problem once, each between guard bands. Calls rotate over the
slots, so addresses differ from call to call. References never lie in here.
"""

import fcntl
import mmap
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import torch

from evaluator.host.cuda import Driver
from evaluator.host.protocol import Message
from evaluator.problems.prototypes import Parameter
from evaluator.problems.tensors import TORCH_TYPES

GUARD_BYTES = 64 << 10
ALIGNMENT = 256
SEALS = 0x0001 | 0x0002 | 0x0004  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW (linux/fcntl.h)
F_ADD_SEALS = 1033


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a tensor lies in a slot, in bytes; its guards are GUARD_BYTES before and after."""

    parameter: Parameter
    offset: int
    byte_count: int

    @property
    def name(self) -> str:
        return self.parameter.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    places: tuple[Place, ...]
    slot_bytes: int
    slot_count: int

    @property
    def byte_count(self) -> int:
        return self.slot_bytes * self.slot_count


def slot_layout(parameters: Sequence[Parameter], slot_count: int) -> Layout:
    """Tensors in call order; starts are aligned to ALIGNMENT, the rear guard starts at once."""
    places, offset = [], GUARD_BYTES
    for parameter in parameters:
        if parameter.is_scalar:
            continue
        size = prod(parameter.shape) * TORCH_TYPES[parameter.dtype].itemsize
        places.append(Place(parameter=parameter, offset=offset, byte_count=size))
        offset = _aligned(offset + size + 2 * GUARD_BYTES)
    return Layout(places=tuple(places), slot_bytes=offset, slot_count=slot_count)


def _aligned(offset: int) -> int:
    return offset + -offset % ALIGNMENT


class Memory(Protocol):
    """Shared bytes as a flat uint8 tensor, and how the host reaches them."""

    tensor: torch.Tensor

    def shared(self) -> Message: ...
    def descriptors(self) -> tuple[int, ...]: ...
    def close(self) -> None: ...


class HostMemory:
    """A sealed memfd: the host can write into it but not make it shorter under the judge."""

    def __init__(self, byte_count: int) -> None:
        self._descriptor = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._descriptor, byte_count)
        fcntl.fcntl(self._descriptor, F_ADD_SEALS, SEALS)
        self._mapping = mmap.mmap(self._descriptor, byte_count)
        self.tensor = torch.frombuffer(self._mapping, dtype=torch.uint8)

    def shared(self) -> Message:
        size = len(self._mapping)
        return {"kind": "memfd", "descriptor": self._descriptor, "byte_count": size}

    def descriptors(self) -> tuple[int, ...]:
        return (self._descriptor,)

    def close(self) -> None:
        del self.tensor
        os.close(self._descriptor)


class DeviceMemory:
    """cuMemAlloc outside torch's allocator, exported by a CUDA IPC handle."""

    def __init__(self, driver: Driver, byte_count: int) -> None:
        self._driver = driver
        self._address = driver.allocate(byte_count)
        self._byte_count = byte_count
        self.tensor = torch.as_tensor(_Exposed(self._address, byte_count), device="cuda")

    def shared(self) -> Message:
        return {"kind": "ipc", "handle": self._driver.export(self._address).hex()}

    def descriptors(self) -> tuple[int, ...]:
        return ()

    def close(self) -> None:
        del self.tensor
        self._driver.free(self._address)


class PrivateMemory:
    """Of the judge alone: nothing is shared."""

    def __init__(self, byte_count: int, device: str) -> None:
        self.tensor = torch.empty(byte_count, dtype=torch.uint8, device=device)

    def shared(self) -> Message:
        raise ValueError("private memory is not for hosts")

    def descriptors(self) -> tuple[int, ...]:
        return ()

    def close(self) -> None:
        del self.tensor


class _Exposed:
    """Foreign device memory as torch takes it: the CUDA array interface, version 3."""

    def __init__(self, address: int, byte_count: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (byte_count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


class Arena:
    """Tensors and guards of each slot, as views of one shared memory."""

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self.memory, self.layout = memory, layout
        self._guard_bytes: dict[int, int] = {}

    def copy_from(self, other: "Arena", slots: range) -> None:
        """Everything of neighbouring slots from an arena of the same layout, in one copy."""
        size = self.layout.slot_bytes
        part = slice(slots.start * size, slots.stop * size)
        self.memory.tensor[part].copy_(other.memory.tensor[part])
        self._guard_bytes.update((slot, other._guard_bytes[slot]) for slot in slots)

    def tensor(self, slot: int, place: Place) -> torch.Tensor:
        start = slot * self.layout.slot_bytes + place.offset
        raw = self.memory.tensor[start : start + place.byte_count]
        dtype = TORCH_TYPES[place.parameter.dtype]
        return raw.view(dtype).view(place.parameter.shape)

    def inputs(self, slot: int) -> dict[str, torch.Tensor]:
        return self._side(slot, is_output=False)

    def outputs(self, slot: int) -> dict[str, torch.Tensor]:
        return self._side(slot, is_output=True)

    def _side(self, slot: int, *, is_output: bool) -> dict[str, torch.Tensor]:
        places = [p for p in self.layout.places if p.parameter.is_output is is_output]
        return {place.name: self.tensor(slot, place) for place in places}

    def offsets(self, slot: int) -> dict[str, int]:
        base = slot * self.layout.slot_bytes
        return {place.name: base + place.offset for place in self.layout.places}

    def guard(self, slot: int) -> None:
        """Fill every guard band of a slot with one fresh byte."""
        self._guard_bytes[slot] = secrets.randbelow(254) + 1
        for _, band in self._bands(slot):
            band.fill_(self._guard_bytes[slot])

    def broken_guards(self, slot: int) -> tuple[str, ...]:
        """Names of tensors with a changed byte in the band before or after them."""
        bands = self._bands(slot)
        changed = torch.stack(
            [(band != self._guard_bytes[slot]).any() for _, band in bands]
        ).tolist()
        seen = [name for (name, _), bad in zip(bands, changed, strict=True) if bad]
        return tuple(dict.fromkeys(seen))

    def _bands(self, slot: int) -> list[tuple[str, torch.Tensor]]:
        base, bands, raw = slot * self.layout.slot_bytes, [], self.memory.tensor
        for place in self.layout.places:
            start, end = base + place.offset, base + place.offset + place.byte_count
            bands.append((place.name, raw[start - GUARD_BYTES : start]))
            bands.append((place.name, raw[end : end + GUARD_BYTES]))
        return bands

    def close(self) -> None:
        self.memory.close()
