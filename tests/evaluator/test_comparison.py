"""Every element counts: infinities, NaN, minus zero, poison, and what a record may carry."""

import json
import math

import pytest
import torch

from evaluator import comparison
from evaluator.comparison import compare, poison
from evaluator.records.problem import Tolerance

INF, NAN = math.inf, math.nan


def of(actual, expected, dtype=torch.float32, **tolerance):
    left, right = torch.tensor(actual, dtype=dtype), torch.tensor(expected, dtype=dtype)
    return compare("out", left, right, Tolerance(**tolerance))


@pytest.mark.parametrize(
    ("expected", "actual", "bad"),
    [
        (-INF, -INF, 0),
        (INF, INF, 0),
        (INF, -INF, 1),
        (INF, 3.4e38, 1),
        (3.4e38, INF, 1),
        (1.0, NAN, 1),
        (NAN, NAN, 1),
        (NAN, 1.0, 1),
        (0.0, -0.0, 0),
        (1.0, 1.02, 0),
        (1.0, 1.0201, 1),
    ],
)
def test_it_matches_as_the_rule_says(expected, actual, bad):
    assert of([actual], [expected]).bad_count == bad


def test_it_accepts_the_next_bf16_value():
    assert of([131.0], [130.0], dtype=torch.bfloat16).bad_count == 0


def test_it_counts_nan_in_the_reference_apart():
    seen = of([NAN, 1.0, NAN], [NAN, 1.0, 2.0])
    assert (seen.reference_nan_count, seen.bad_count, seen.nonfinite_count) == (1, 2, 2)


def test_it_holds_null_instead_of_nan():
    seen = of([NAN, INF], [1.0, -INF])
    assert seen.max_abs_error is None
    assert seen.max_rel_error is None
    assert seen.smallest_passing_atol is None
    assert seen.first_bad_actual is None
    assert seen.first_bad_expected == 1.0
    assert "NaN" not in json.dumps(seen.model_dump(mode="json"))


def test_it_names_the_first_bad_index_across_chunks(monkeypatch):
    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", 5)
    expected = torch.zeros(3, 4, 2)
    actual = expected.clone()
    actual[1, 3, 1] = 7.0
    actual[2, 0, 0] = 9.0
    seen = compare("out", actual, expected, Tolerance())
    assert seen.first_bad_index == (1, 3, 1)
    assert (seen.first_bad_expected, seen.first_bad_actual) == (0.0, 7.0)
    assert (seen.bad_count, seen.element_count, seen.shape) == (2, 24, (3, 4, 2))
    assert seen.max_abs_error == 9.0
    assert seen.smallest_passing_atol == 9.0


def test_the_smallest_passing_atol_passes_and_less_does_not():
    torch.manual_seed(1)
    expected = torch.randn(1000, dtype=torch.float64).float()
    actual = expected + 0.1 * torch.randn(1000)
    atol = compare("out", actual, expected, Tolerance()).smallest_passing_atol
    assert compare("out", actual, expected, Tolerance(atol=atol)).bad_count == 0
    assert compare("out", actual, expected, Tolerance(atol=atol * 0.999)).bad_count == 1


def test_it_agrees_with_allclose_in_float64():
    torch.manual_seed(2)
    for _ in range(50):
        expected = torch.randn(64)
        actual = expected + 0.008 * torch.randn(64)
        close = torch.allclose(actual.double(), expected.double(), atol=1e-2, rtol=1e-2)
        assert (compare("out", actual, expected, Tolerance()).bad_count == 0) is close


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int8]
)
def test_it_counts_elements_that_still_hold_the_poison(dtype):
    expected = torch.ones(10, dtype=dtype)
    actual = expected.clone()
    poison(actual[6:])
    seen = compare("out", actual, expected, Tolerance(atol=100.0))
    assert (seen.unwritten_count, seen.bad_count) == (4, 4)
    assert seen.first_bad_index == (6,)


def test_poison_is_nan():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        filled = torch.zeros(3, dtype=dtype)
        poison(filled)
        assert filled.isnan().all()


def test_it_hints_at_another_base_of_the_logarithm():
    torch.manual_seed(3)
    natural = 8.8 + 0.05 * torch.randn(4096)
    seen = compare("LSE", natural, natural / math.log(2), Tolerance())
    assert seen.bad_count == 4096
    assert seen.constant_ratio == pytest.approx(0.6931, abs=1e-4)


def test_it_hints_at_no_ratio_where_an_offset_is_added():
    torch.manual_seed(3)
    natural = 8.8 + 0.05 * torch.randn(4096)
    assert compare("LSE", natural + 0.69, natural, Tolerance()).constant_ratio is None


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_it_hints_at_no_ratio_for_zeros_or_a_pass(scale):
    expected = torch.arange(1.0, 9.0)
    assert compare("out", scale * expected, expected, Tolerance()).constant_ratio is None


def test_it_tells_the_error_against_fp32_as_a_fraction():
    exact = torch.full((8,), 4.0)
    seen = compare("out", exact + 1.0, exact + 1.0, Tolerance(), fp32=exact)
    assert seen.rms_error_to_fp32 == 0.25
    assert compare("out", exact, exact, Tolerance()).rms_error_to_fp32 is None
    lost = compare("out", torch.full((8,), NAN), exact, Tolerance(), fp32=exact)
    assert lost.rms_error_to_fp32 is None


def test_it_compares_an_empty_output():
    seen = compare("out", torch.empty(0, 4), torch.empty(0, 4), Tolerance())
    assert (seen.element_count, seen.bad_count, seen.max_abs_error) == (0, 0, None)


def test_it_refuses_another_shape_or_dtype():
    with pytest.raises(ValueError, match=r"got \(3,\) torch\.float32, expected \(4,\)"):
        compare("out", torch.zeros(3), torch.zeros(4), Tolerance())
    with pytest.raises(ValueError, match=r"expected .* torch\.bfloat16"):
        compare("out", torch.zeros(3), torch.zeros(3, dtype=torch.bfloat16), Tolerance())


def test_it_reads_an_output_that_is_not_contiguous():
    expected = torch.arange(12.0).reshape(3, 4)
    assert compare("out", expected.T.clone().T, expected, Tolerance()).bad_count == 0
