"""How often samples succeed and what a success costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


def pass_at_k(*, samples: int, correct: int, k: int) -> float | None:
    """Chance that at least one of `k` samples is correct: 1 - C(n - c, k) / C(n, k).

    Unbiased for samples drawn independently (Chen et al., arXiv 2107.03374), exact in integers.
    None where fewer than `k` samples were taken: an estimate from them would be biased. Turns of
    one trajectory are no independent samples; trajectories are. Raises ValueError for counts that
    cannot be.
    """
    if not 0 <= correct <= samples or k < 1:
        raise ValueError(
            f"{correct} correct of {samples} samples at k = {k}; expected 0 <= correct <= samples "
            "and k >= 1"
        )
    if samples < k:
        return None
    return 1 - math.comb(samples - correct, k) / math.comb(samples, k)


def mean_pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> float | None:
    """Over problems with (samples, correct) each; None where none or one of them has too few."""
    values = [pass_at_k(samples=samples, correct=correct, k=k) for samples, correct in counts]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return math.fsum(known) / len(known)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerSuccess:
    """All that was spent, failures included, over what succeeded; None: no success, or unknown."""

    successes: int
    tokens: float | None
    cost_usd: float | None


def per_success(*, successes: int, tokens: int | None, cost_usd: float | None) -> PerSuccess:
    """`tokens` or `cost_usd` None: not every turn told its own, so the sum is not known."""

    def share(total: float | None) -> float | None:
        return total / successes if successes and total is not None else None

    return PerSuccess(successes=successes, tokens=share(tokens), cost_usd=share(cost_usd))
