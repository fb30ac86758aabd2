"""A Triton driver without a GPU: JIT compiles for the real architecture, launches are written down.

Source: what triton 3.6 asks of `triton.runtime.driver.active`, and the order in which its own
launcher passes arguments (tensor map, shape, strides; then global and profile scratch).
"""

import struct
from pathlib import Path
from typing import Any, NoReturn

from evaluator.triton.tracer.tensors import FIRST_PLACE, Memory, Refused, Tensor
from evaluator.triton.tracer.torch_names import Properties

SHARED_BYTES = 232448
MOST_OPERATIONS = 1024
WHOLE_NUMBERS = {f"{sign}{bits}": bits for sign in "iu" for bits in (1, 8, 16, 32, 64)}
FLOATS = {"fp16": ("e", 16), "fp32": ("f", 32), "f32": ("f", 32), "fp64": ("d", 64)}
# Device and host number some element types differently: fp64, bf16 and fp16 swap places.
HOST_ELEMENT_TYPES = {8: 10, 9: 8, 10: 9}
ONE_CONFIGURATION = (
    "@triton.autotune measures on a GPU, and a build has none: choose one configuration"
)


class Recorder:
    """What the built library will replay: kernels, and operations in order."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        self.memory = memory
        self.folder = folder
        self.kernels: list[dict[str, Any]] = []
        self.operations: list[dict[str, Any]] = []
        self.recording = True
        memory.record = self.add

    def add(self, operation: dict[str, Any]) -> None:
        if len(self.operations) >= MOST_OPERATIONS:
            raise Refused(f"more than {MOST_OPERATIONS} launches in one call")
        self.operations.append(operation)

    def add_kernel(self, name: str, cubin: bytes, shared_bytes: int) -> int:
        number = len(self.kernels)
        (self.folder / f"kernel_{number}.cubin").write_bytes(cubin)
        self.kernels.append({"name": name, "shared_bytes": shared_bytes})
        return number


class Utilities:
    """The part of a driver that loads binaries and knows the device."""

    def __init__(self, recorder: Recorder, properties: Properties) -> None:
        self._recorder = recorder
        self._properties = properties

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        return {
            "max_shared_mem": SHARED_BYTES,
            "max_num_regs": self._properties.regs_per_multiprocessor,
            "multiprocessor_count": self._properties.multi_processor_count,
            "warpSize": self._properties.warp_size,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 2_619_000,
            "mem_bus_width": 5120,
        }

    def load_binary(
        self, name: str, cubin: bytes, shared_bytes: int, device: int
    ) -> tuple[int, int, int, int, int]:
        """(module, function, registers, spills, threads per block at most)"""
        return 0, self._recorder.add_kernel(name, cubin, shared_bytes), 0, 0, 1024


class TracingDriver:
    def __init__(self, recorder: Recorder, properties: Properties) -> None:
        self._capability = properties.major * 10 + properties.minor
        self.utils = Utilities(recorder, properties)
        self.launcher_cls = lambda source, metadata: Launcher(recorder, source, metadata)

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self._capability, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return None

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(self._capability, 10)

    def get_active_torch_device(self) -> str:
        return "cuda:0"

    def get_benchmarker(self) -> NoReturn:
        raise Refused(ONE_CONFIGURATION)

    def clear_cache(self, cache: Any) -> NoReturn:
        raise Refused(ONE_CONFIGURATION)

    get_empty_cache_for_benchmark = get_benchmarker


class Launcher:
    """One compiled kernel; being called is being launched."""

    def __init__(self, recorder: Recorder, source: Any, metadata: Any) -> None:
        self._recorder = recorder
        self._signature = dict(source.signature)
        self._metadata = metadata
        self._maps = list(getattr(metadata, "tensordesc_meta", None) or [])

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
        grid = [int(x), int(y), int(z)]
        if 0 in grid:
            return
        values = rest[4:]
        seen = self._metadata
        maps = iter(self._maps)
        arguments: list[dict[str, Any]] = []
        for kind, value in zip(self._signature.values(), values, strict=True):
            arguments += self._arguments(kind, value, maps)
        blocks = grid[0] * grid[1] * grid[2] * seen.num_ctas
        for size in (seen.global_scratch_size, seen.profile_scratch_size):
            arguments.append(self._scratch(blocks * size))
        self._recorder.add(
            {
                "kind": "launch",
                "kernel": function,
                "grid": grid,
                "warps": seen.num_warps,
                "ctas": seen.num_ctas,
                "cooperative": bool(seen.launch_cooperative_grid),
                "dependent": bool(seen.launch_pdl),
                "arguments": arguments,
            }
        )

    def _scratch(self, byte_count: int) -> dict[str, Any]:
        if byte_count == 0:
            return {"kind": "pointer", "storage": "none", "number": 0, "offset": 0}
        return pointer(self._recorder.memory.scratch(byte_count).address, self._recorder.memory)

    def _arguments(self, kind: Any, value: Any, maps: Any) -> list[dict[str, Any]]:
        if isinstance(kind, tuple):
            pairs = zip(kind, value, strict=True)
            return [one for part in pairs for one in self._arguments(*part, maps)]
        if kind == "constexpr":
            return []
        if kind.startswith("tensordesc"):
            return self._descriptor(value, next(maps, None))
        if kind.startswith("*"):
            return [pointer(value, self._recorder.memory)]
        return [scalar(kind, value)]

    def _descriptor(self, value: Any, tile: dict[str, Any] | None) -> list[dict[str, Any]]:
        shape, strides = list(value.shape), list(value.strides)
        sizes = [scalar("i32", one) for one in shape] + [scalar("i64", one) for one in strides]
        if tile is None:
            base = pointer(value.base, self._recorder.memory)
            both = [scalar("i64", one) for one in (*shape, *strides)]
            return [base, *both, scalar("i1", value.padding == "nan"), *sizes]
        base = pointer(value.base, self._recorder.memory)
        described = {
            **base,
            "kind": "tensor_map",
            "swizzle": int(tile["swizzle"]),
            "element_bytes": int(tile["elem_size"]),
            "element_type": HOST_ELEMENT_TYPES.get(tile["elem_type"], tile["elem_type"]),
            "box": [int(one) for one in tile["block_size"]],
            "shape": [int(one) for one in shape],
            "strides": [int(one) for one in strides],
            "fill_nan": value.padding == "nan",
        }
        if tile["fp4_padded"]:
            described["shape"][-1] *= 2
        return [described, *sizes]


def pointer(value: Any, memory: Memory) -> dict[str, Any]:
    """Where in which storage; raises Refused for an address of nothing that we know."""
    if value is None:
        return {"kind": "pointer", "storage": "none", "number": 0, "offset": 0}
    address = value if isinstance(value, int) else value.data_ptr()
    place = memory.place(address)
    if place is None:
        raise Refused(f"a kernel got the address {address:#x}, which belongs to no tensor")
    storage, offset = place
    return {
        "kind": "pointer",
        "storage": storage.kind,
        "number": storage.number,
        "offset": offset,
    }


def scalar(kind: str, value: Any) -> dict[str, Any]:
    """The bits that the kernel's parameter holds."""
    if isinstance(value, Tensor):
        raise Refused(f"a kernel's scalar of type {kind} got a tensor")
    if kind in WHOLE_NUMBERS:
        width = max(8, WHOLE_NUMBERS[kind])
        if int(value) >= FIRST_PLACE and width == 64:
            raise Refused("an address was passed as a number: pass the tensor itself")
        return {"kind": "scalar", "width": width, "bits": int(value) % (1 << width)}
    if kind == "bf16":
        bits = int.from_bytes(struct.pack("<f", float(value)), "little") >> 16
        return {"kind": "scalar", "width": 16, "bits": bits}
    if kind not in FLOATS:
        raise Refused(f"a kernel's parameter of type {kind} is not supported")
    code, width = FLOATS[kind]
    bits = int.from_bytes(struct.pack(f"<{code}", float(value)), "little")
    return {"kind": "scalar", "width": width, "bits": bits}


def names_are_unique(used: dict[str, int]) -> None:
    """The second kernel of one name becomes `name_2`: counters are joined by kernel and address."""
    from triton.runtime.jit import JITFunction

    original = JITFunction.repr

    def numbered(self: Any, specialization: Any) -> str:
        name = original(self, specialization).rsplit(".", 1)[-1]
        used[name] = used.get(name, 0) + 1
        return name if used[name] == 1 else f"{name}_{used[name]}"

    JITFunction.repr = numbered
