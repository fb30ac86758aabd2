"""The unit that stages pass along: a candidate for a problem, its folder and results so far."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluator.records.base import sha256_hex
from evaluator.records.candidate import Candidate
from evaluator.records.evaluation import AnyStageResult
from evaluator.records.evidence import Artifact
from evaluator.records.problem import Problem
from evaluator.records.verdicts import EvaluatorFault, Stage
from evaluator.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """`folder` is private to this evaluation; artifacts lie in it under their SHA-256."""

    candidate: Candidate
    problem: Problem
    target: Target
    folder: Path
    results: tuple[AnyStageResult, ...] = ()
    cancelled: Callable[[], bool] = field(default=lambda: False)

    def with_result(self, result: AnyStageResult) -> "Work":
        return replace(self, results=(*self.results, result))

    def result(self, stage: Stage) -> AnyStageResult | None:
        return next((result for result in self.results if result.stage is stage), None)

    def artifact(self, role: str) -> Artifact | None:
        """The newest artifact of a role among the results, None where no stage made one."""
        for result in reversed(self.results):
            for artifact in result.artifacts:
                if artifact.role == role:
                    return artifact
        return None

    def store(self, role: str, data: bytes) -> Artifact:
        """Keep bytes in the folder under their digest."""
        artifact = Artifact(role=role, sha256=sha256_hex(data), byte_count=len(data))
        (self.folder / artifact.sha256).write_bytes(data)
        return artifact

    def path(self, artifact: Artifact) -> Path:
        """The artifact's file, its digest checked: what was inspected is what runs.

        Raises EvaluatorFault if the file is missing or its bytes are others.
        """
        path = self.folder / artifact.sha256
        seen = sha256_hex(path.read_bytes()) if path.exists() else "no file"
        if seen != artifact.sha256:
            raise EvaluatorFault(
                f"{artifact.role}: expected SHA-256 {artifact.sha256}, found {seen}; "
                "the evaluation's folder was changed or lost, so it is run again"
            )
        return path
