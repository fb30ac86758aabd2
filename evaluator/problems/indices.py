"""Integer inputs that must be valid: offsets of sequences, and numbers of pages.

A workload says how they are drawn, in fields beside FlashInfer-Trace's `"type": "random"`:
`lengths`   offsets (a prefix sum that begins with 0) of these lengths in a random order, which all
            such inputs of a call share
`distinct_below`  different numbers, each at least 0 and below the size of the axis named
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluator.records.flashinfer import InputSpec, RandomInput
from evaluator.records.problem import Problem
from evaluator.records.verdicts import EvaluatorFault

LENGTHS, DISTINCT_BELOW = "lengths", "distinct_below"


def offsets_input(lengths: Sequence[int]) -> RandomInput:
    return RandomInput.model_validate({"type": "random", LENGTHS: list(lengths)})


def distinct_input(axis: str) -> RandomInput:
    return RandomInput.model_validate({"type": "random", DISTINCT_BELOW: axis})


def lengths_by_input(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Of every input that holds offsets. Raises EvaluatorFault where two differ in number."""
    told = _told(problem.workload.inputs, LENGTHS)
    found = {name: tuple(int(length) for length in lengths) for name, lengths in told.items()}
    if len({len(lengths) for lengths in found.values()}) > 1:
        counts = ", ".join(f"{name} {len(lengths)}" for name, lengths in found.items())
        raise EvaluatorFault(f"{problem.name}: inputs tell different numbers of lengths: {counts}")
    return found


def bounds_by_input(problem: Problem, sizes: Mapping[str, int]) -> dict[str, int]:
    """The size that numbers stay below, of every input that holds distinct numbers."""
    told = _told(problem.workload.inputs, DISTINCT_BELOW)
    return {name: sizes[axis] for name, axis in told.items()}


def drawing_by_input(problem: Problem) -> dict[str, str]:
    """In words, what each call draws for the inputs that must be valid."""
    words = {
        name: _counted(lengths) + (", in another order each call" if len(lengths) > 1 else "")
        for name, lengths in lengths_by_input(problem).items()
    }
    for name, axis in _told(problem.workload.inputs, DISTINCT_BELOW).items():
        words[name] = f"different numbers below {axis}, drawn anew each call"
    return words


def _counted(lengths: Sequence[int]) -> str:
    listed = ", ".join(str(length) for length in sorted(lengths))
    return f"length {listed}" if len(lengths) == 1 else f"lengths {listed}"


def _told(inputs: Mapping[str, InputSpec], field: str) -> dict[str, Any]:
    """What a field says, of the random inputs that have it."""
    return {
        name: source.model_extra[field]
        for name, source in inputs.items()
        if isinstance(source, RandomInput) and source.model_extra and field in source.model_extra
    }
