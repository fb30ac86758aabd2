"""The generated unit that includes the entry file and checks the entry point's parameters.

For the C binding the compiler itself is asked for the parameter types, by templates, so that a
wrong prototype is a compile error in words and not a crash on the GPU. What is not checked: the
pointee of a typed pointer (an author may read bf16 as uint4), and the body. For tvm-ffi the
binding's own macro checks the types when it is called.
"""

from evaluator.problems.prototypes import Parameter, c_type, parameters
from evaluator.records.candidate import Binding, Candidate
from evaluator.records.flashinfer import DType
from evaluator.records.problem import Problem
from evaluator.targets import Target

MARK = "entry signature: "
COUNTS_NAMED = 12
FLOATING = {DType.FLOAT32: 4}
INTEGRAL = {DType.INT64: 8, DType.INT32: 4, DType.INT16: 2, DType.INT8: 1, DType.BOOL: 1}

PREAMBLE = """\
#undef {symbol}
#undef static_assert
#include <type_traits>

namespace ptxboard_entry {{
struct absent {{}};
absent {symbol}();  // found by ::{symbol} only where the entry file declares none
}}
using namespace ptxboard_entry;

namespace ptxboard_entry {{
template <int index, typename... Given>
struct nth {{ using type = absent; }};
template <typename First, typename... Rest>
struct nth<0, First, Rest...> {{ using type = First; }};
template <int index, typename First, typename... Rest>
struct nth<index, First, Rest...> : nth<index - 1, Rest...> {{}};

template <typename Function>
struct signature;
template <typename Result, typename... Given>
struct signature<Result (*)(Given...)> {{
  static constexpr bool checked = !std::is_same<Result, absent>::value;
  static constexpr int count = checked ? static_cast<int>(sizeof...(Given)) : {expected};
  template <int index>
  using at = typename nth<index, Given...>::type;
}};
template <typename Result, typename... Given>
struct signature<Result (*)(Given...) noexcept> : signature<Result (*)(Given...)> {{}};

using seen = signature<decltype(&::{symbol})>;
constexpr bool comparable = seen::checked && seen::count == {expected};
"""


def entry_unit(candidate: Candidate, problem: Problem, target: Target) -> str:
    """The unit's text; it differs by problem, so it is part of the build's cache key."""
    include = f"#include <{candidate.entry_file}>\n"
    if candidate.binding is not Binding.C:
        return include
    given = parameters(problem)
    symbol = candidate.entry_symbol
    listed = [f"{c_type(item, candidate.language)} {item.name}" for item in given]
    listed += ["cudaStream_t stream"] if target.is_gpu else []
    lines = [PREAMBLE.format(symbol=symbol, expected=len(listed))]
    lines += _count_checks(symbol, listed)
    lines += [_type_check(symbol, index, item, listed) for index, item in enumerate(given)]
    if target.is_gpu:
        lines.append(_stream_check(symbol, len(given), listed))
    return include + "\n".join([*lines, "}"]) + "\n"


def _count_checks(symbol: str, listed: list[str]) -> list[str]:
    """One assertion for each wrong count, since a message cannot hold a computed number."""
    wanted = f"{symbol} takes {len(listed)} parameters ({', '.join(listed)})"
    most = len(listed) + COUNTS_NAMED
    checks = [
        _assertion(f"seen::count != {count}", f"{wanted}, seen {count}")
        for count in range(most + 1)
        if count != len(listed)
    ]
    return [*checks, _assertion(f"seen::count <= {most}", f"{wanted}, seen more than {most}")]


def _type_check(symbol: str, index: int, item: Parameter, listed: list[str]) -> str:
    seen = f"seen::at<{index}>"
    place = f"parameter {index + 1} of {symbol} ({listed[index]})"
    if not item.is_scalar:
        return _assertion(
            f"!comparable || std::is_pointer<{seen}>::value",
            f"{place} must be a pointer, void or typed",
        )
    if item.dtype in FLOATING:
        kind, size = "std::is_floating_point", FLOATING[item.dtype]
    elif item.dtype in INTEGRAL:
        kind, size = "std::is_integral", INTEGRAL[item.dtype]
    else:
        kind, size = "!std::is_pointer", 2
    condition = f"!comparable || ({kind}<{seen}>::value && sizeof({seen}) == {size})"
    return _assertion(condition, f"{place} must be a scalar of {size} bytes, passed by value")


def _stream_check(symbol: str, index: int, listed: list[str]) -> str:
    seen = f"seen::at<{index}>"
    return _assertion(
        f"!comparable || std::is_same<{seen}, cudaStream_t>::value "
        f"|| std::is_same<{seen}, void*>::value",
        f"the last parameter of {symbol} must be the stream ({listed[index]})",
    )


def _assertion(condition: str, text: str) -> str:
    return f'static_assert({condition}, "{MARK}{text}");'
