"""The tables, one file a noun. Records of what was measured are append-only."""

from leaderboard.models.artifact import Artifact, StageArtifact
from leaderboard.models.attempt import Attempt
from leaderboard.models.audit import AuditEntry, AuditHead, Correction
from leaderboard.models.entrant import Entrant
from leaderboard.models.evaluation import Evaluation
from leaderboard.models.job import Job
from leaderboard.models.model_run import ModelRun, RunVariant
from leaderboard.models.problem import Problem
from leaderboard.models.sign_in import SignInFailure
from leaderboard.models.stage_record import StageRecord
from leaderboard.models.standing import ModelStanding, RunTally
from leaderboard.models.submission import Submission
from leaderboard.models.token import ApiToken
from leaderboard.models.trajectory import Trajectory
from leaderboard.models.turn import Turn
from leaderboard.models.worker import DutyRun, Worker

__all__ = [
    "ApiToken",
    "Artifact",
    "Attempt",
    "AuditEntry",
    "AuditHead",
    "Correction",
    "DutyRun",
    "Entrant",
    "Evaluation",
    "Job",
    "ModelRun",
    "ModelStanding",
    "Problem",
    "RunTally",
    "RunVariant",
    "SignInFailure",
    "StageArtifact",
    "StageRecord",
    "Submission",
    "Trajectory",
    "Turn",
    "Worker",
]
