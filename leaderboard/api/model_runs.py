"""Model runs by REST: hand in an endpoint, watch, pause, resume, cancel, take trajectories home."""

from typing import Any
from uuid import UUID

from django.http import Http404, JsonResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluator.targets import TARGETS
from leaderboard.api import schema
from leaderboard.api.authentication import CanSubmit, CanSubmitOrRead
from leaderboard.api.bodies import plain_request, read_json
from leaderboard.api.pagination import NewestFirst
from leaderboard.api.representations_runs import (
    run_brief,
    run_json,
    trajectory_json,
    turn_json,
)
from leaderboard.api.submissions import check_filter, idempotency_key
from leaderboard.endpoints.probing import probe
from leaderboard.models import ModelRun, Trajectory, Turn
from leaderboard.refusals import FieldError, InvalidFilter
from leaderboard.services.model_runs.control import (
    model_run_cancel,
    model_run_pause,
    model_run_resume,
    trajectory_cancel,
    trajectory_hold,
)
from leaderboard.services.model_runs.creation import model_runs_create
from leaderboard.services.model_runs.exports import FORMATS, trajectory_export
from leaderboard.services.model_runs.requests import read_endpoint

LOOKUPS = {
    "problem": "problem__name",
    "target": "target",
    "entrant": "entrant__slug",
    "state": "state",
    "batch": "batch",
}
CHOICES = {"target": list(TARGETS), "state": ModelRun.State.values}


class ModelRunList(APIView):
    permission_classes = [CanSubmitOrRead]

    @extend_schema(operation_id="model_runs_list", responses=schema.ModelRunPage)
    def get(self, request: Request) -> Response:
        """The newest first, by cursor; filters: problem, target, entrant, state, batch, mine."""
        pages = NewestFirst()
        rows = pages.paginate_queryset(_filtered(request), request, view=self) or []
        return pages.get_paginated_response([run_brief(row, request) for row in rows])

    @extend_schema(
        request=schema.ModelRunBody,
        responses={201: schema.AnyObject, 200: schema.AnyObject},
        parameters=[schema.IDEMPOTENCY_PARAMETER],
    )
    def post(self, request: Request) -> Response:
        """Run a model on problems: one run for each. The key is write-only and deleted at the end.

        The answer says how many calls the runs make at most.
        """
        key = idempotency_key(request)
        made = model_runs_create(
            owner=request.user, body=read_json(request).value, idempotency_key=key
        )
        runs = [run_json(run, request) for run in made.runs]
        body = {
            "batch": str(made.runs[0].batch),
            "calls_at_most": sum(run["plan"]["calls_at_most"] for run in runs),
            "runs": runs,
        }
        headers = {"Location": runs[0]["url"]}
        return Response(body, status=201 if made.created else 200, headers=headers)


def _filtered(request: Request) -> Any:
    rows = ModelRun.objects.for_list()
    for name, lookup in LOOKUPS.items():
        if value := request.query_params.get(name):
            check_filter(name, value, CHOICES.get(name))
            rows = rows.filter(**{lookup: _uuid(name, value) if name == "batch" else value})
    if request.query_params.get("mine") and request.user.is_authenticated:
        rows = rows.filter(owner=request.user)
    return rows


def _uuid(name: str, value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        error = FieldError(pointer=name, message="expected a UUID", seen=value[:60])
        raise InvalidFilter(f"{name}: expected a UUID", errors=[error]) from None


class ConnectionTest(APIView):
    permission_classes = [CanSubmit]

    @extend_schema(request=schema.EndpointBody, responses=schema.ProbeShape)
    def post(self, request: Request) -> Response:
        """One tiny request to the endpoint; nothing is stored. 200 whatever came of it."""
        asked = read_endpoint(read_json(request).value)
        result = probe(asked.endpoint(), asked.parameters)
        return Response(
            {
                "ok": result.ok,
                "message": result.message,
                "kind": result.kind.value if result.kind else None,
                "model": result.model,
                "seconds": result.seconds,
            }
        )


def find_run(run_id: UUID) -> ModelRun:
    found = ModelRun.objects.select_related("entrant", "problem", "owner").filter(pk=run_id).first()
    if found is None:
        raise Http404(f"There is no model run {run_id}.")
    return found


def find_trajectory(trajectory_id: UUID) -> Trajectory:
    rows = Trajectory.objects.select_related("run__problem", "run__owner", "run__entrant")
    found = rows.select_related("variant").filter(pk=trajectory_id).first()
    if found is None:
        raise Http404(f"There is no trajectory {trajectory_id}.")
    return found


class ModelRunOne(APIView):
    @extend_schema(responses=schema.AnyObject)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Plan, use so far, metrics, and the grid of trajectories x turns."""
        return Response(run_json(find_run(run_id), request))


class ModelRunAction(APIView):
    permission_classes = [CanSubmit]


class ModelRunPause(ModelRunAction):
    @extend_schema(request=None, responses=schema.AnyObject)
    def post(self, request: Request, run_id: UUID) -> Response:
        """No further call is made; what is under way ends and is kept."""
        model_run_pause(run=find_run(run_id), user=request.user)
        return Response(run_json(find_run(run_id), request))


class ModelRunResume(ModelRunAction):
    @extend_schema(request=schema.ResumeBody, responses=schema.AnyObject)
    def post(self, request: Request, run_id: UUID) -> Response:
        """Go on; the body may give another `key`, or another `budget` as a whole."""
        body = read_json(request).value if _has_body(request) else {}
        model_run_resume(run=find_run(run_id), user=request.user, body=body)
        return Response(run_json(find_run(run_id), request))


def _has_body(request: Request) -> bool:
    meta = plain_request(request).META
    return (meta.get("CONTENT_LENGTH") or "0") != "0" or "HTTP_TRANSFER_ENCODING" in meta


class ModelRunCancel(ModelRunAction):
    @extend_schema(request=None, responses=schema.AnyObject)
    def post(self, request: Request, run_id: UUID) -> Response:
        """End every trajectory and delete the key; stored turns stay."""
        model_run_cancel(run=find_run(run_id), user=request.user)
        return Response(run_json(find_run(run_id), request))


class TrajectoryOne(APIView):
    @extend_schema(responses=schema.AnyObject)
    def get(self, request: Request, trajectory_id: UUID) -> Response:
        """The base prompt and every turn with answer, reasoning, feedback and digests."""
        return Response(trajectory_json(find_trajectory(trajectory_id), request))


class TrajectoryPause(ModelRunAction):
    @extend_schema(request=None, responses=schema.AnyObject)
    def post(self, request: Request, trajectory_id: UUID) -> Response:
        trajectory = find_trajectory(trajectory_id)
        trajectory_hold(trajectory=trajectory, user=request.user, held=True)
        return Response(trajectory_json(find_trajectory(trajectory_id), request))


class TrajectoryResume(ModelRunAction):
    @extend_schema(request=None, responses=schema.AnyObject)
    def post(self, request: Request, trajectory_id: UUID) -> Response:
        trajectory = find_trajectory(trajectory_id)
        trajectory_hold(trajectory=trajectory, user=request.user, held=False)
        return Response(trajectory_json(find_trajectory(trajectory_id), request))


class TrajectoryCancel(ModelRunAction):
    @extend_schema(request=None, responses=schema.AnyObject)
    def post(self, request: Request, trajectory_id: UUID) -> Response:
        """End it; the turns that it had planned stay in every denominator."""
        trajectory_cancel(trajectory=find_trajectory(trajectory_id), user=request.user)
        return Response(trajectory_json(find_trajectory(trajectory_id), request))


class TrajectoryExport(APIView):
    @extend_schema(responses=schema.AnyObject, parameters=[schema.EXPORT_PARAMETER])
    def get(self, request: Request, trajectory_id: UUID) -> JsonResponse:
        """As one file: `ptxboard` (default), `mini-swe-agent` (1.1) or `flashinfer-trace`."""
        wanted = request.query_params.get("format", "ptxboard")
        check_filter("format", wanted, list(FORMATS))
        trajectory = find_trajectory(trajectory_id)
        answer = JsonResponse(trajectory_export(trajectory, wanted))
        name = f"trajectory_{trajectory.pk}_{wanted}.json"
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        answer["X-Content-Type-Options"] = "nosniff"
        return answer


class TurnOne(APIView):
    @extend_schema(responses=schema.AnyObject)
    def get(self, request: Request, turn_id: int) -> Response:
        """One turn whole, with the very bytes that were sent."""
        rows = Turn.objects.select_related("submission__problem", "trajectory__run")
        turn = rows.filter(pk=turn_id).first()
        if turn is None:
            raise Http404(f"There is no turn {turn_id}.")
        return Response(turn_json(turn, request, whole=True))
