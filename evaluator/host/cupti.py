"""CUPTI's activity records through ctypes: what the device of this process did, and when.

Only the leading fields of each record are read; CUPTI appends fields at the end from version to
version. Offsets are those of `cupti_activity.h` in CUDA 13.0 (CUpti_ActivityKernel10,
CUpti_ActivityMemcpy6, CUpti_ActivityMemcpyPtoP4, CUpti_ActivityMemset4).
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any

MEMCPY, MEMSET, CONCURRENT_KERNEL, MEMCPY_PEER = 1, 2, 10, 22
KINDS = {MEMCPY: "memcpy", MEMSET: "memset", CONCURRENT_KERNEL: "kernel", MEMCPY_PEER: "memcpy"}
FLUSH_FORCED = 1
BUFFER_BYTES = 1 << 20
ALIGNMENT = 8
MAX_RECORDS = 20_000

START_AT, END_AT = 16, 24
GRID_AT, BLOCK_AT, NAME_AT, STREAM_AT = 52, 64, 104, 48
COPY_STREAM_AT = 40

SizeP = ctypes.POINTER(ctypes.c_size_t)
REQUESTED = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), SizeP, SizeP)
COMPLETED = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_size_t,
)


class CuptiError(Exception):
    """CUPTI refused; the text says which call and what it said."""


@dataclass(slots=True)
class Recorder:
    """Collects records from `start` to `stop`; `take` hands over those that are complete."""

    path: str
    records: list[dict[str, Any]] = field(default_factory=list)
    dropped: int = 0
    _library: Any = None
    _buffers: dict[int, Any] = field(default_factory=dict)
    _callbacks: tuple[Any, Any] | None = None

    def start(self) -> None:
        if self._callbacks is None:
            self._callbacks = (REQUESTED(self._requested), COMPLETED(self._completed))
            self._call("cuptiActivityRegisterCallbacks", *self._callbacks)
        for kind in KINDS:
            self._call("cuptiActivityEnable", kind)

    def stop(self) -> None:
        for kind in KINDS:
            self._call("cuptiActivityDisable", kind)

    def now_ns(self) -> int:
        stamp = ctypes.c_uint64()
        self._call("cuptiGetTimestamp", ctypes.byref(stamp))
        return stamp.value

    def take(self) -> list[dict[str, Any]]:
        self._call("cuptiActivityFlushAll", FLUSH_FORCED)
        taken, self.records = self.records, []
        return taken

    def _call(self, name: str, *arguments: Any) -> None:
        if self._library is None:
            self._library = ctypes.CDLL(self.path)
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuptiGetResultString(code, ctypes.byref(text))
            raise CuptiError(f"{name}: {(text.value or b'?').decode()} ({code})")

    def _requested(self, buffer: Any, size: Any, most_records: Any) -> None:
        memory = ctypes.create_string_buffer(BUFFER_BYTES + ALIGNMENT)
        start = ctypes.addressof(memory)
        aligned = start + -start % ALIGNMENT
        self._buffers[aligned] = memory
        buffer[0], size[0], most_records[0] = aligned, BUFFER_BYTES, 0

    def _completed(self, _context: int, _stream: int, buffer: int, _size: int, valid: int) -> None:
        record = ctypes.c_void_p()
        following = self._library.cuptiActivityGetNextRecord
        where, count = ctypes.c_void_p(buffer), ctypes.c_size_t(valid)
        while valid and following(where, count, ctypes.byref(record)) == 0:
            self._keep(record.value or 0)
        self._buffers.pop(buffer, None)

    def _keep(self, address: int) -> None:
        kind = ctypes.c_uint32.from_address(address).value
        if kind not in KINDS:
            return
        if len(self.records) >= MAX_RECORDS:
            self.dropped += 1
            return
        self.records.append(_kernel(address) if kind == CONCURRENT_KERNEL else _copy(address, kind))


def _u64(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _triple(address: int) -> list[int]:
    return list((ctypes.c_int32 * 3).from_address(address))


def _kernel(address: int) -> dict[str, Any]:
    name = ctypes.c_char_p.from_address(address + NAME_AT).value or b"?"
    return {
        "kind": "kernel",
        "name": name.decode(errors="replace")[:1000],
        "start": _u64(address + START_AT),
        "end": _u64(address + END_AT),
        "stream": ctypes.c_uint32.from_address(address + STREAM_AT).value,
        "grid": _triple(address + GRID_AT),
        "block": _triple(address + BLOCK_AT),
    }


def _copy(address: int, kind: int) -> dict[str, Any]:
    return {
        "kind": KINDS[kind],
        "name": KINDS[kind],
        "start": _u64(address + START_AT),
        "end": _u64(address + END_AT),
        "stream": ctypes.c_uint32.from_address(address + COPY_STREAM_AT).value,
    }
