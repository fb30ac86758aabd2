"""The problem set: the five operators of the PTXBench paper, their relatives and small twins."""

from difflib import get_close_matches
from functools import cache

from evaluator.problems.catalogue import build_catalogue
from evaluator.problems.prototypes import Parameter, parameters, prototype
from evaluator.records.problem import Problem

__all__ = ["Parameter", "find_problem", "load_problems", "parameters", "prototype"]


@cache
def _catalogue() -> dict[str, Problem]:
    return {problem.name: problem for problem in build_catalogue()}


def load_problems() -> dict[str, Problem]:
    """All problems by name, in the order in which pages list them; the dict is the caller's."""
    return dict(_catalogue())


def find_problem(name: str) -> Problem:
    """The problem called `name`; raises KeyError whose text lists near or known names."""
    known = _catalogue()
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3, cutoff=0.75)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known problems: {', '.join(known)}"
    raise KeyError(f"problem {name!r} is not known; {hint}")
