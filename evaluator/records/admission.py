"""What was found when wrong answers were given to a problem."""

from pydantic import Field

from evaluator.records.base import Record

ONE_IS_ENOUGH = ("lost_keys", "future_key", "fp8_inputs", "fp8_operands")
"""Wrong answers that change every output at once: one output that fails gives them away."""


class MutantOutcome(Record):
    """One wrong answer in one output.

    bad_count  elements that break the tolerance; 0 means that it passes
    margin     the factor by which atol would have to grow for it to pass, at most 1 where it
               passes as it is; None where no atol would do (NaN or infinity)
    """

    mutant: str
    output: str
    bad_count: int = Field(ge=0)
    element_count: int = Field(gt=0)
    max_abs_error: float | None
    margin: float | None

    @property
    def bad_fraction(self) -> float:
        return self.bad_count / self.element_count

    @property
    def passes(self) -> bool:
        return self.bad_count == 0


class AdmissionReport(Record):
    """`reasons` refuse a problem; `caveats` go with it; `not_tried` says which wrong answers do
    not exist for it, and why. All are whole sentences.
    """

    problem: str
    problem_digest: str
    device: str
    torch_version: str
    tolerance_atol: float
    tolerance_rtol: float
    outcomes: tuple[MutantOutcome, ...]
    reasons: tuple[str, ...]
    caveats: tuple[str, ...]
    not_tried: tuple[str, ...] = ()

    @property
    def admitted(self) -> bool:
        return not self.reasons
