"""Compare one output with its reference, every element of it, without a word of judgement.

In      tensors of one shape and dtype on one device; any size, worked through in chunks
Out     OutputError: counts, the first bad index, the largest errors, the smallest passing atol
Raises  ValueError: shapes or dtypes differ (checked by the caller before, with its own verdict)
Source  `|actual - expected| <= atol + rtol * |expected|`, the rule of torch.allclose, computed
        in float64; equal infinities match, NaN never does

Temporaries take about 10 * 8 * CHUNK_ELEMENTS bytes, 340 MB at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod, sqrt

import torch

from evaluator.records.evidence import OutputError
from evaluator.records.problem import Tolerance

CHUNK_ELEMENTS = 1 << 22
NO_INDEX = 1 << 62
RATIO_IS_ONE = 0.02
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
POISON = {1: 255, 2: -1, 4: -1, 8: -1}


def compare(
    name: str,
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance,
    fp32: torch.Tensor | None = None,
) -> OutputError:
    """What differs between `actual` and `expected`; `fp32` is the same output computed in fp32."""
    _check_alike(name, actual, expected, fp32)
    tally = _Tally.zeros(expected.device)
    for start, stop in _chunks(expected.numel()):
        reference = None if fp32 is None else fp32.reshape(-1)[start:stop]
        pair = _Pair.of(actual.reshape(-1)[start:stop], expected.reshape(-1)[start:stop], tolerance)
        tally.add(pair, start, tolerance, reference)
    return _output_error(name, actual, expected, tally, with_fp32=fp32 is not None)


def poison(tensor: torch.Tensor) -> None:
    """Fill with all-ones bits, a NaN in every float format: what is left over was not written."""
    tensor.view(BITS[tensor.element_size()]).fill_(POISON[tensor.element_size()])


def _check_alike(
    name: str, actual: torch.Tensor, expected: torch.Tensor, fp32: torch.Tensor | None
) -> None:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        seen = f"{tuple(actual.shape)} {actual.dtype}"
        wanted = f"{tuple(expected.shape)} {expected.dtype}"
        raise ValueError(f"output {name!r}: got {seen}, expected {wanted}")
    if fp32 is not None and fp32.shape != expected.shape:
        seen, wanted = str(tuple(fp32.shape)), str(tuple(expected.shape))
        raise ValueError(f"output {name!r}: fp32 reference is {seen}, expected {wanted}")


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, CHUNK_ELEMENTS):
        yield start, min(start + CHUNK_ELEMENTS, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A chunk of both sides in float64; masks say what may be compared and what is bad."""

    actual: torch.Tensor
    expected: torch.Tensor
    finite: torch.Tensor
    bad: torch.Tensor
    unwritten: torch.Tensor

    @classmethod
    def of(cls, actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> "_Pair":
        unwritten = _poisoned(actual) & ~_poisoned(expected)
        left, right = actual.to(torch.float64), expected.to(torch.float64)
        finite = torch.isfinite(left) & torch.isfinite(right)
        near = (left - right).abs() <= tolerance.atol + tolerance.rtol * right.abs()
        good = (left == right) | (finite & near)
        bad = ~good | unwritten
        return cls(actual=left, expected=right, finite=finite, bad=bad, unwritten=unwritten)


def _poisoned(tensor: torch.Tensor) -> torch.Tensor:
    size = tensor.element_size()
    return tensor.contiguous().view(BITS[size]) == POISON[size]


@dataclass(slots=True, kw_only=True)
class _Tally:
    """Running sums and maxima as 0-d float64 tensors, so that the device is read only once."""

    unwritten: torch.Tensor
    nonfinite: torch.Tensor
    bad: torch.Tensor
    reference_nan: torch.Tensor
    compared: torch.Tensor
    first_bad: torch.Tensor
    max_abs: torch.Tensor
    max_rel: torch.Tensor
    max_excess: torch.Tensor
    actual_squares: torch.Tensor
    expected_squares: torch.Tensor
    products: torch.Tensor
    fp32_squares: torch.Tensor
    fp32_errors: torch.Tensor

    @classmethod
    def zeros(cls, device: torch.device) -> "_Tally":
        made = {
            field.name: torch.zeros((), dtype=torch.float64, device=device) for field in fields(cls)
        }
        made["first_bad"].fill_(NO_INDEX)
        return cls(**made)

    def add(self, pair: _Pair, start: int, tolerance: Tolerance, fp32: torch.Tensor | None) -> None:
        self._count(pair, start)
        left = torch.where(pair.finite, pair.actual, 0.0)
        right = torch.where(pair.finite, pair.expected, 0.0)
        size, error = right.abs(), (left - right).abs()
        relative = torch.where(size > 0, error / size.clamp_min(1e-300), 0.0)
        self.max_abs = torch.maximum(self.max_abs, error.max())
        self.max_rel = torch.maximum(self.max_rel, relative.max())
        excess = (error - tolerance.rtol * size).max()
        self.max_excess = torch.maximum(self.max_excess, excess)
        self.actual_squares += left.square().sum()
        self.expected_squares += right.square().sum()
        self.products += (left * right).sum()
        if fp32 is not None:
            self._add_fp32(pair, fp32)

    def _count(self, pair: _Pair, start: int) -> None:
        self.unwritten += pair.unwritten.sum()
        self.nonfinite += (pair.bad & ~pair.finite).sum()
        self.bad += pair.bad.sum()
        self.reference_nan += torch.isnan(pair.expected).sum()
        self.compared += pair.finite.sum()
        place = pair.bad.to(torch.uint8).argmax().to(torch.float64) + start
        here = torch.where(pair.bad.any(), place, float(NO_INDEX))
        self.first_bad = torch.minimum(self.first_bad, here)

    def _add_fp32(self, pair: _Pair, fp32: torch.Tensor) -> None:
        """A NaN of the candidate's stays a NaN here and becomes None in the record."""
        exact = fp32.to(torch.float64)
        usable = torch.isfinite(exact)
        error = torch.where(usable, pair.actual - exact, 0.0)
        self.fp32_errors += error.square().sum()
        self.fp32_squares += torch.where(usable, exact, 0.0).square().sum()

    def numbers(self) -> dict[str, float]:
        names = [field.name for field in fields(self)]
        values = torch.stack([getattr(self, name) for name in names]).tolist()
        return dict(zip(names, values, strict=True))


def _output_error(
    name: str, actual: torch.Tensor, expected: torch.Tensor, tally: _Tally, *, with_fp32: bool
) -> OutputError:
    seen = tally.numbers()
    flat = int(seen["first_bad"]) if seen["bad"] else None
    any_compared = seen["compared"] > 0
    hopeless = seen["nonfinite"] > 0 or not any_compared
    return OutputError(
        name=name,
        shape=tuple(expected.shape),
        dtype=str(expected.dtype).removeprefix("torch."),
        element_count=prod(expected.shape),
        unwritten_count=int(seen["unwritten"]),
        nonfinite_count=int(seen["nonfinite"]),
        bad_count=int(seen["bad"]),
        first_bad_index=None if flat is None else _unravel(flat, tuple(expected.shape)),
        first_bad_expected=None if flat is None else _element(expected, flat),
        first_bad_actual=None if flat is None else _element(actual, flat),
        max_abs_error=_finite(seen["max_abs"]) if any_compared else None,
        max_rel_error=_finite(seen["max_rel"]) if any_compared else None,
        smallest_passing_atol=None if hopeless else _finite(seen["max_excess"]),
        rms_error_to_fp32=_rms_error(seen) if with_fp32 else None,
        constant_ratio=_constant_ratio(seen, expected.dtype),
        reference_nan_count=int(seen["reference_nan"]),
    )


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _element(tensor: torch.Tensor, flat: int) -> float | None:
    return _finite(float(tensor.reshape(-1)[flat].to(torch.float64)))


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for extent in reversed(shape):
        flat, place = divmod(flat, extent)
        index.append(place)
    return tuple(reversed(index))


def _rms_error(seen: dict[str, float]) -> float | None:
    known = seen["fp32_squares"] > 0 and seen["fp32_errors"] >= 0
    return _finite(sqrt(seen["fp32_errors"] / seen["fp32_squares"])) if known else None


def _constant_ratio(seen: dict[str, float], dtype: torch.dtype) -> float | None:
    """The factor of a least-squares fit, where it leaves no more than rounding behind.

    A log-sum-exp in another base shows as ln 2 or its inverse; nothing is rescaled for it.
    """
    fits = seen["compared"] >= 2 and seen["bad"] > 0 and seen["nonfinite"] == 0
    if not fits or not seen["expected_squares"] > 0 or not seen["actual_squares"] > 0:
        return None
    ratio = seen["products"] / seen["expected_squares"]
    left_over = max(seen["actual_squares"] - ratio * seen["products"], 0.0)
    limit = 1e-4 if dtype == torch.float32 else 5e-3
    if abs(ratio - 1) <= RATIO_IS_ONE or sqrt(left_over / seen["actual_squares"]) > limit:
        return None
    return _finite(ratio)
