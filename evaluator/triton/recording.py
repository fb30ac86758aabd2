"""What the tracer left, checked like any input of strangers: sizes, ranges and references."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluator.records.base import Record

SHARED_BYTES = 232448
MOST_KERNELS = 128
MOST_OPERATIONS = 1024
MOST_SCRATCH_BYTES = 32 << 30
MOST_THREADS = 1024
WARP = 32

Extent = Annotated[int, Field(ge=1, le=1 << 40)]
Step = Annotated[int, Field(ge=0, le=1 << 40)]
Blocks = Annotated[int, Field(ge=1, le=(1 << 31) - 1)]
FewBlocks = Annotated[int, Field(ge=1, le=65535)]


class Kernel(Record):
    """`name` as the cubin has it; `shared_bytes` dynamic, per block."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,500}$")
    shared_bytes: int = Field(ge=0, le=SHARED_BYTES)


class Place(Record):
    """`offset` in bytes; `parameter` counts the problem's tensors, `scratch` allocations."""

    storage: Literal["parameter", "scratch", "none"]
    number: int = Field(ge=0)
    offset: int = Field(ge=0, le=1 << 44)


class Pointer(Place):
    kind: Literal["pointer"]


class Scalar(Record):
    """`bits` of the parameter, as an unsigned number of `width` bits."""

    kind: Literal["scalar"]
    width: Literal[8, 16, 32, 64]
    bits: int = Field(ge=0)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.bits >> self.width:
            raise ValueError(f"{self.bits} has more than {self.width} bits")
        return self


class TensorMap(Place):
    """A CUtensorMap by value; extents and strides in elements, the fastest axis last."""

    kind: Literal["tensor_map"]
    swizzle: int = Field(ge=0, le=3)
    element_bytes: Literal[1, 2, 4, 8]
    element_type: int = Field(ge=0, le=15)
    box: tuple[Annotated[int, Field(ge=1, le=256)], ...] = Field(min_length=1, max_length=5)
    shape: tuple[Extent, ...]
    strides: tuple[Step, ...]
    fill_nan: bool

    @model_validator(mode="after")
    def _one_rank(self) -> Self:
        if not len(self.box) == len(self.shape) == len(self.strides):
            raise ValueError("box, shape and strides of a tensor map differ in length")
        return self


Argument = Annotated[Pointer | Scalar | TensorMap, Field(discriminator="kind")]


class Launch(Record):
    """`dependent`: programmatic dependent launch; `ctas`: blocks of a cluster."""

    kind: Literal["launch"]
    kernel: int = Field(ge=0)
    grid: tuple[Blocks, FewBlocks, FewBlocks]
    warps: int = Field(ge=1, le=MOST_THREADS // WARP)
    ctas: int = Field(ge=1, le=16)
    cooperative: bool
    dependent: bool
    arguments: tuple[Argument, ...] = Field(max_length=512)

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The grid as CUDA counts it."""
        return (self.grid[0] * self.ctas, self.grid[1], self.grid[2])


class Clear(Place):
    """Zeros, written in the order of the launches."""

    kind: Literal["clear"]
    byte_count: int = Field(ge=0, le=1 << 44)


Operation = Annotated[Launch | Clear, Field(discriminator="kind")]


class Recording(Record):
    """One call of the entry point; `scratch` in bytes per allocation."""

    kernels: tuple[Kernel, ...] = Field(min_length=1, max_length=MOST_KERNELS)
    scratch: tuple[Annotated[int, Field(ge=0, le=MOST_SCRATCH_BYTES)], ...] = Field(max_length=512)
    operations: tuple[Operation, ...] = Field(min_length=1, max_length=MOST_OPERATIONS)

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> Self:
        if sum(self.scratch) > MOST_SCRATCH_BYTES:
            raise ValueError(f"more than {MOST_SCRATCH_BYTES} bytes of scratch memory")
        names = [kernel.name for kernel in self.kernels]
        if len(set(names)) != len(names):
            raise ValueError("two kernels have one name")
        for operation in self.operations:
            if isinstance(operation, Launch) and operation.kernel >= len(self.kernels):
                raise ValueError(f"kernel {operation.kernel} of {len(self.kernels)} is launched")
        for place in self.places:
            if place.storage == "scratch" and place.number >= len(self.scratch):
                raise ValueError(f"scratch {place.number} of {len(self.scratch)} is used")
        return self

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(one for one in self.operations if isinstance(one, Launch))

    @property
    def places(self) -> tuple[Place, ...]:
        inside = (one for launch in self.launches for one in launch.arguments)
        everything = (*self.operations, *inside)
        return tuple(one for one in everything if isinstance(one, Place))
