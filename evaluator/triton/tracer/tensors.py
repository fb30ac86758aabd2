"""Tensors without data: shape, strides, dtype and a place in memory that launches refer to.

Views are free, since they only change numbers. Whatever would compute is refused in words: a
recorded run has no values. `empty` and `zeros` become scratch memory of the built library.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NoReturn

PLACE_BYTES = 1 << 42
FIRST_PLACE = 1 << 46
MOST_SCRATCH_BYTES = 32 << 30
NO_VALUES = "while a candidate is built its tensors hold no values; do it in a @triton.jit kernel"


class Refused(Exception):
    """The candidate asked for what a traced run does not have; the text is for its author."""


class RefusedName(Refused, AttributeError):
    """The same, where `hasattr` may ask."""


@dataclass(frozen=True, slots=True)
class DType:
    """Printed as torch prints its own: Triton reads the name."""

    name: str
    itemsize: int
    is_floating_point: bool

    def __str__(self) -> str:
        return f"torch.{self.name}"

    __repr__ = __str__


DTYPES = {
    name: DType(name, size, name.startswith(("float", "bfloat")))
    for name, size in {
        "float64": 8,
        "float32": 4,
        "float16": 2,
        "bfloat16": 2,
        "float8_e4m3fn": 1,
        "float8_e5m2": 1,
        "int64": 8,
        "int32": 4,
        "int16": 2,
        "int8": 1,
        "uint8": 1,
        "bool": 1,
    }.items()
}


@dataclass(frozen=True, slots=True)
class Storage:
    """`kind`: parameter or scratch; `number` counts within its kind."""

    kind: str
    number: int
    byte_count: int
    address: int


@dataclass(slots=True)
class Memory:
    """Every storage of the run, and the clearing of it, in order with the launches."""

    storages: list[Storage] = field(default_factory=list)
    record: Callable[[dict[str, Any]], None] = lambda operation: None

    def add(self, kind: str, byte_count: int) -> Storage:
        number = sum(one.kind == kind for one in self.storages)
        address = FIRST_PLACE + len(self.storages) * PLACE_BYTES
        if byte_count > PLACE_BYTES // 2:
            raise Refused(f"a tensor of {byte_count} bytes: no GPU holds that")
        self.storages.append(Storage(kind, number, byte_count, address))
        return self.storages[-1]

    def scratch(self, byte_count: int) -> Storage:
        total = byte_count + sum(one.byte_count for one in self.storages if one.kind == "scratch")
        if total > MOST_SCRATCH_BYTES:
            raise Refused(f"{total} bytes of scratch memory, at most {MOST_SCRATCH_BYTES}")
        return self.add("scratch", byte_count)

    def place(self, address: int) -> tuple[Storage, int] | None:
        """The storage that an address lies in, and the offset in bytes."""
        for one in self.storages:
            if 0 <= address - one.address < PLACE_BYTES:
                return one, address - one.address
        return None


@dataclass(frozen=True, slots=True)
class Device:
    """Also what `with torch.cuda.device(...)` enters."""

    type: str = "cuda"
    index: int = 0

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= max(extent, 1)
    return tuple(reversed(steps))


class Size(tuple[int, ...]):
    """A shape with torch's one method."""

    __slots__ = ()

    def numel(self) -> int:
        return prod(self)


@dataclass(frozen=True, eq=False)
class Tensor:
    """Offsets and strides count elements."""

    memory: Memory
    storage: Storage
    dtype: DType
    shape: Size
    strides: tuple[int, ...]
    offset: int = 0
    device = Device()
    is_cuda = True
    requires_grad = False
    layout = "strided"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    @property
    def T(self) -> "Tensor":  # noqa: N802  torch's name
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self) -> "Tensor":  # noqa: N802  torch's name
        return self.transpose(-2, -1)

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return prod(self.shape)

    def nelement(self) -> int:
        return self.numel()

    def element_size(self) -> int:
        return self.itemsize

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self.strides if dim is None else self.strides[dim]

    def storage_offset(self) -> int:
        return self.offset

    def data_ptr(self) -> int:
        return self.storage.address + self.offset * self.itemsize

    def is_contiguous(self) -> bool:
        wanted = strides_of(self.shape)
        return all(
            extent <= 1 or seen == step
            for extent, seen, step in zip(self.shape, self.strides, wanted, strict=True)
        )

    def contiguous(self) -> "Tensor":
        if not self.is_contiguous():
            raise Refused(f"contiguous() of {self._words()} would copy; {NO_VALUES}")
        return self

    def detach(self) -> "Tensor":
        return self

    def _with(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> "Tensor":
        return replace(self, shape=Size(shape), strides=tuple(strides), offset=self.offset + offset)

    def _axis(self, dim: int) -> int:
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(f"dimension {dim} of a tensor with {self.ndim} dimensions")
        return dim % self.ndim

    def permute(self, *dims: Any) -> "Tensor":
        order = [self._axis(dim) for dim in flat(dims)]
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"permute{tuple(order)} of a tensor with {self.ndim} dimensions")
        return self._with([self.shape[i] for i in order], [self.strides[i] for i in order])

    def transpose(self, first: int, second: int) -> "Tensor":
        order = list(range(self.ndim))
        one, two = self._axis(first), self._axis(second)
        order[one], order[two] = order[two], order[one]
        return self.permute(*order)

    def t(self) -> "Tensor":
        return self.transpose(0, 1)

    def view(self, *shape: Any) -> "Tensor":
        if len(shape) == 1 and isinstance(shape[0], DType):
            if shape[0].itemsize != self.itemsize:
                raise Refused(f"view({shape[0]}) of {self.dtype}: only of the same size")
            return replace(self, dtype=shape[0])
        if not self.is_contiguous():
            raise Refused(f"view of {self._words()}: its elements do not lie one after another")
        wanted = [int(extent) for extent in flat(shape)]
        if wanted.count(-1) == 1:
            known = -prod(wanted)
            wanted[wanted.index(-1)] = self.numel() // known if known else 0
        if prod(wanted) != self.numel() or min(wanted, default=0) < 0:
            raise ValueError(f"shape {tuple(wanted)} does not fit {self.numel()} elements")
        return self._with(wanted, strides_of(wanted))

    reshape = view

    def view_as(self, other: "Tensor") -> "Tensor":
        return self.view(*other.shape)

    def flatten(self, start: int = 0, end: int = -1) -> "Tensor":
        first, last = self._axis(start), self._axis(end)
        middle = prod(self.shape[first : last + 1])
        return self.view(*self.shape[:first], middle, *self.shape[last + 1 :])

    def unsqueeze(self, dim: int) -> "Tensor":
        at = dim if dim >= 0 else dim + self.ndim + 1
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(at, 1)
        strides.insert(at, 1)
        return self._with(shape, strides)

    def squeeze(self, dim: int | None = None) -> "Tensor":
        only = None if dim is None else self._axis(dim)
        kept = [i for i, n in enumerate(self.shape) if n != 1 or (only is not None and i != only)]
        return self._with([self.shape[i] for i in kept], [self.strides[i] for i in kept])

    def expand(self, *shape: Any) -> "Tensor":
        wanted = flat(shape)
        missing = len(wanted) - self.ndim
        known = list(zip((1,) * missing + self.shape, (0,) * missing + self.strides, strict=True))
        pairs = [
            (extent, step) if want in (-1, extent) else (want, 0)
            for want, (extent, step) in zip(wanted, known, strict=True)
        ]
        return self._with([extent for extent, _ in pairs], [step for _, step in pairs])

    def narrow(self, dim: int, start: int, length: int) -> "Tensor":
        index: list[Any] = [slice(None)] * self.ndim
        index[self._axis(dim)] = slice(start, start + length)
        return self[tuple(index)]

    def __getitem__(self, index: Any) -> "Tensor":
        items = index if isinstance(index, tuple) else (index,)
        used = sum(item is not None and item is not Ellipsis for item in items)
        if used > self.ndim:
            raise IndexError(f"{used} indices of a tensor with {self.ndim} dimensions")
        fill = [slice(None)] * (self.ndim - used)
        at = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
        listed = [*items[:at], *fill, *items[at + 1 :]]
        shape, strides, offset, axis = [], [], 0, 0
        for item in listed:
            if item is None:
                shape.append(1)
                strides.append(1)
                continue
            extent, step = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(item, slice):
                start, stop, stride = item.indices(extent)
                if stride < 1:
                    raise ValueError("a slice of a tensor goes forwards")
                offset += start * step if start < extent else 0
                shape.append(len(range(start, stop, stride)))
                strides.append(step * stride)
            elif isinstance(item, int) and -extent <= item < extent:
                offset += (item % extent) * step
            else:
                raise Refused(f"index {item!r} of an axis of {extent}: {NO_VALUES}")
        return self._with(shape, strides, offset)

    def __len__(self) -> int:
        return self.shape[0]

    def zero_(self) -> "Tensor":
        """Recorded: each call of the built library clears these bytes in its turn."""
        if not self.is_contiguous():
            raise Refused(f"zero_() of {self._words()}: its elements do not lie together")
        self.memory.record(
            {
                "kind": "clear",
                "storage": self.storage.kind,
                "number": self.storage.number,
                "offset": self.offset * self.itemsize,
                "byte_count": self.nbytes,
            }
        )
        return self

    def fill_(self, value: Any) -> "Tensor":
        if value != 0:
            raise Refused(f"fill_({value!r}): only zeros can be filled in; {NO_VALUES}")
        return self.zero_()

    def _words(self) -> str:
        return f"a tensor of shape {tuple(self.shape)} and strides {self.strides}"

    def __getattr__(self, name: str) -> NoReturn:
        raise RefusedName(f"tensor.{name}: {NO_VALUES}")


def _refuser(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        raise Refused(f"tensor.{name}: {NO_VALUES}")

    return refuse


UNARY = ("neg", "invert", "abs", "bool", "int", "float", "index", "iter")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
COMPARISONS = ("lt", "le", "gt", "ge", "setitem", "contains")
OPERATORS = (
    *UNARY,
    *(f"{side}{name}" for name in BINARY for side in ("", "r", "i")),
    *COMPARISONS,
)
for _name in OPERATORS:
    setattr(Tensor, f"__{_name}__", _refuser(f"__{_name}__"))


def flat(items: Sequence[Any]) -> list[Any]:
    return list(items[0]) if len(items) == 1 and isinstance(items[0], list | tuple) else list(items)
