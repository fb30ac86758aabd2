"""Results of stages, and the record that a whole evaluation leaves behind."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, SerializeAsAny

from evaluator.records.base import Record
from evaluator.records.candidate import Candidate
from evaluator.records.evidence import (
    Artifact,
    CompilationEvidence,
    CorrectnessEvidence,
    CountersEvidence,
    PolicyEvidence,
    SanitizerEvidence,
    SassEvidence,
    TimingEvidence,
)
from evaluator.records.problem import Problem
from evaluator.records.verdicts import InstructionStatus, Lane, Stage, Tier, Verdict

EvidenceT = TypeVar("EvidenceT", bound=BaseModel)

EVIDENCE_TYPES: dict[Stage, type[Record]] = {
    Stage.POLICY: PolicyEvidence,
    Stage.COMPILATION: CompilationEvidence,
    Stage.SASS: SassEvidence,
    Stage.SANITIZER: SanitizerEvidence,
    Stage.CORRECTNESS: CorrectnessEvidence,
    Stage.COUNTERS: CountersEvidence,
    Stage.TIMING: TimingEvidence,
}


class StageResult(Record, Generic[EvidenceT]):
    """One stage's verdict with what it was decided from."""

    stage: Stage
    verdict: Verdict
    message: str
    evidence: SerializeAsAny[EvidenceT] | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    artifacts: tuple[Artifact, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASSED


AnyStageResult = StageResult[Any]


def stage_result_from_json(value: object) -> AnyStageResult:
    """A stage result whose evidence has the type that its stage prescribes.

    Raises pydantic.ValidationError where a field is missing, unknown or of another type.
    """
    return AnyStageResult.model_validate(_with_typed_evidence(value))


def _with_typed_evidence(value: Any) -> Any:
    if not isinstance(value, Mapping) or not isinstance(value.get("evidence"), Mapping):
        return value
    if value.get("stage") not in list(Stage):
        return value
    evidence_type = EVIDENCE_TYPES[Stage(value["stage"])]
    return {**value, "evidence": evidence_type.model_validate(value["evidence"])}


AnyStage = Annotated[SerializeAsAny[AnyStageResult], BeforeValidator(_with_typed_evidence)]


class Environment(Record):
    """The machine that measured; None where a part does not exist there, never a guess."""

    harness_version: str
    hostname_digest: str | None = None
    operating_system: str
    python: str
    compiler: str | None = None
    device_name: str | None = None
    device_uuid: str | None = None
    driver: str | None = None
    cuda_runtime: str | None = None
    cupti: str | None = None
    nsight_compute: str | None = None
    compute_sanitizer: str | None = None
    cuobjdump: str | None = None
    torch: str | None = None
    cudnn: str | None = None
    cublas: str | None = None
    sandbox: str
    unsafe_no_sandbox: bool = False


class TargetInstructions(Record):
    """Whether and how much the architecture's own instructions did; apart from correctness."""

    status: InstructionStatus
    reason: str = ""
    tier: Tier | None = None
    work_share: float | None = None
    work_share_reason: str | None = None


class Score(Record):
    """What a board ranks by; present only where timing passed."""

    scoring_version: str
    latency_ns: float
    baseline_latency_ns: float
    speedup: float
    speedup_low: float
    speedup_high: float
    noise: float
    sample_count: int


class EvaluationRecord(Record):
    """One evaluation, whole: it stands alone and says which versions made it."""

    format: str = "ptxboard.evaluation/1"
    candidate: Candidate
    problem_digest: str
    environment: Environment
    stages: tuple[AnyStage, ...]
    stages_not_reached: tuple[Stage, ...]
    verdict: Verdict
    message: str
    target_instructions: TargetInstructions | None = None
    score: Score | None = None


class JobOrder(Record):
    """The answer to a claim: all that a worker needs for one attempt."""

    attempt: str
    job: str
    fence: str
    lane: Lane
    number: int
    lease_seconds: int
    candidate: Candidate
    problem: Problem
    build_artifacts: tuple[Artifact, ...] = ()
    stages: tuple[AnyStage, ...] = ()
