"""A problem: a FlashInfer-Trace definition and workload with what we judge it by."""

from enum import StrEnum

from pydantic import Field

from evaluator.records.base import Record, digest_of
from evaluator.records.flashinfer import Definition, Workload


class Family(StrEnum):
    """What the judge needs to know: how to make inputs, the fp32 reference and the baseline."""

    GEMM = "gemm"
    MHA_FORWARD = "mha_forward"
    MHA_BACKWARD = "mha_backward"


class Tolerance(Record):
    """`|out - ref| <= atol + rtol * |ref|` on every element, as torch.allclose has it."""

    atol: float = 1e-2
    rtol: float = 1e-2


class Baseline(Record):
    """The tuned library that a speedup is measured against; its version is recorded per run."""

    name: str
    call: str


class Problem(Record):
    """One entry of the problem set; `digest` covers all of it."""

    name: str
    title: str
    family: Family
    causal: bool = False
    development: bool = False
    definition: Definition
    workload: Workload
    tolerance: Tolerance = Tolerance()
    flop_count: int = Field(gt=0)
    byte_count: int = Field(gt=0, description="bytes of all inputs and outputs, each moved once")
    baseline: Baseline
    targets: tuple[str, ...]
    allowed_libraries: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))
