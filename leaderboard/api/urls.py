"""Addresses below /api/. People's end with a slash, and work without; workers' have none."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, path, register_converter
from drf_spectacular.views import SpectacularAPIView

from leaderboard.api import artifacts, catalogue, model_runs, packs, standings, submissions, worker

app_name = "api"


class Sha256:
    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(Sha256, "sha256")


def both(route: str, view: Callable[..., Any], name: str) -> list[URLPattern]:
    """A POST to an address without its slash must not turn into a GET by redirect."""
    return [path(f"{route}/", view, name=name), path(route, view)]


urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    *both("v1", catalogue.Root.as_view(), "root"),
    *both("v1/submissions", submissions.SubmissionList.as_view(), "submissions"),
    *both("v1/submissions/<uuid:submission_id>", submissions.SubmissionOne.as_view(), "submission"),
    *both(
        "v1/submissions/<uuid:submission_id>/cancel",
        submissions.SubmissionCancel.as_view(),
        "cancel",
    ),
    *both(
        "v1/submissions/<uuid:submission_id>/rerun", submissions.SubmissionRerun.as_view(), "rerun"
    ),
    *both(
        "v1/submissions/<uuid:submission_id>/bundle",
        submissions.SubmissionBundle.as_view(),
        "bundle",
    ),
    *both("v1/model-runs", model_runs.ModelRunList.as_view(), "model-runs"),
    *both("v1/model-runs/test-connection", model_runs.ConnectionTest.as_view(), "test-connection"),
    *both("v1/model-runs/<uuid:run_id>", model_runs.ModelRunOne.as_view(), "model-run"),
    *both(
        "v1/model-runs/<uuid:run_id>/pause", model_runs.ModelRunPause.as_view(), "model-run-pause"
    ),
    *both(
        "v1/model-runs/<uuid:run_id>/resume",
        model_runs.ModelRunResume.as_view(),
        "model-run-resume",
    ),
    *both(
        "v1/model-runs/<uuid:run_id>/cancel",
        model_runs.ModelRunCancel.as_view(),
        "model-run-cancel",
    ),
    *both("v1/trajectories/<uuid:trajectory_id>", model_runs.TrajectoryOne.as_view(), "trajectory"),
    *both(
        "v1/trajectories/<uuid:trajectory_id>/pause",
        model_runs.TrajectoryPause.as_view(),
        "trajectory-pause",
    ),
    *both(
        "v1/trajectories/<uuid:trajectory_id>/resume",
        model_runs.TrajectoryResume.as_view(),
        "trajectory-resume",
    ),
    *both(
        "v1/trajectories/<uuid:trajectory_id>/cancel",
        model_runs.TrajectoryCancel.as_view(),
        "trajectory-cancel",
    ),
    *both(
        "v1/trajectories/<uuid:trajectory_id>/export",
        model_runs.TrajectoryExport.as_view(),
        "trajectory-export",
    ),
    *both("v1/turns/<int:turn_id>", model_runs.TurnOne.as_view(), "turn"),
    *both("v1/problems", catalogue.ProblemList.as_view(), "problems"),
    *both("v1/problems/<str:name>", catalogue.ProblemOne.as_view(), "problem"),
    *both("v1/packs", packs.PackList.as_view(), "packs"),
    *both("v1/packs/<str:name>", packs.PackOne.as_view(), "pack"),
    *both("v1/targets", catalogue.TargetList.as_view(), "targets"),
    *both("v1/workers", catalogue.WorkerList.as_view(), "workers"),
    path("v1/boards/<str:target>.csv", standings.TargetBoardCsv.as_view(), name="target-board-csv"),
    path(
        "v1/boards/<str:target>/badges/<str:key>.svg",
        standings.BoardBadge.as_view(),
        name="board-badge",
    ),
    *both("v1/boards/<str:target>", standings.TargetBoardOne.as_view(), "target-board"),
    *both(
        "v1/boards/<str:target>/<str:problem>/fast-p", standings.ProblemFastP.as_view(), "fast-p"
    ),
    path(
        "v1/boards/<str:target>/<str:problem>.csv", catalogue.BoardCsv.as_view(), name="board-csv"
    ),
    *both("v1/boards/<str:target>/<str:problem>", catalogue.BoardOne.as_view(), "board"),
    *both("v1/artifacts/<sha256:sha256>", artifacts.ArtifactOne.as_view(), "artifact"),
    path("v1/worker/hello", worker.Hello.as_view(), name="worker-hello"),
    path("v1/worker/claim", worker.Claim.as_view(), name="worker-claim"),
    path(
        "v1/worker/attempts/<str:attempt_id>/heartbeat",
        worker.AttemptHeartbeat.as_view(),
        name="worker-heartbeat",
    ),
    path(
        "v1/worker/attempts/<str:attempt_id>/stages",
        worker.AttemptStages.as_view(),
        name="worker-stages",
    ),
    path(
        "v1/worker/attempts/<str:attempt_id>/complete",
        worker.AttemptComplete.as_view(),
        name="worker-complete",
    ),
    path(
        "v1/worker/artifacts/<sha256:sha256>",
        worker.WorkerArtifact.as_view(),
        name="worker-artifact",
    ),
]
