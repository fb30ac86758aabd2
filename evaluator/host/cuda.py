"""The few calls of the CUDA driver that host and judge need, through ctypes.

A failed call raises CudaError with the driver's number and name; no other library is loaded.
Source: CUDA driver API 13.0, `cuda.h` (symbols with _v2 are the 64-bit ones).
"""

import ctypes
from typing import Any

OUT_OF_MEMORY = 2
LIMIT_PERSISTING_L2 = 6
LAZY_PEER_ACCESS = 1
NON_BLOCKING = 1
IPC_HANDLE_BYTES = 64


class CudaError(Exception):
    """`code` and `name` as the driver gives them; `call` is what returned them."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call, self.code, self.name = call, code, name


class IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * IPC_HANDLE_BYTES)]


class Driver:
    """libcuda with the primary context of one device made current in this thread.

    Raises OSError without a driver, CudaError without a device.
    """

    def __init__(self, device: int = 0) -> None:
        # Global: candidates call the driver without linking it, and are bound when they load.
        self._library = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
        self.call("cuInit", 0)
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise CudaError(name, code, self._name(code))

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return (text.value or b"unknown error").decode()

    def synchronise(self) -> None:
        """Wait for everything that this context was given, on every stream."""
        self.call("cuCtxSynchronize")

    def allocate(self, byte_count: int) -> int:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(byte_count))
        return address.value

    def free(self, address: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def export(self, address: int) -> bytes:
        handle = IpcHandle()
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(address))
        return ctypes.string_at(ctypes.byref(handle), IPC_HANDLE_BYTES)

    def open_exported(self, exported: bytes) -> int:
        handle = IpcHandle()
        ctypes.memmove(ctypes.byref(handle), exported, IPC_HANDLE_BYTES)
        address = ctypes.c_uint64()
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(address), handle, LAZY_PEER_ACCESS)
        return address.value

    def stream(self) -> int:
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), NON_BLOCKING)
        return made.value or 0

    def copy_in(self, address: int, data: bytes) -> None:
        target = ctypes.c_uint64(address)
        self.call("cuMemcpyHtoD_v2", target, data, ctypes.c_size_t(len(data)))

    def copy_on_device(self, target: int, source: int, byte_count: int) -> None:
        to, start = ctypes.c_uint64(target), ctypes.c_uint64(source)
        self.call("cuMemcpyDtoD_v2", to, start, ctypes.c_size_t(byte_count))

    def forbid_persisting_l2(self) -> None:
        """Persisting lines of L2 become ordinary, so that a flush reaches them."""
        self.call("cuCtxSetLimit", LIMIT_PERSISTING_L2, ctypes.c_size_t(0))
        self.call("cuCtxResetPersistingL2Cache")
