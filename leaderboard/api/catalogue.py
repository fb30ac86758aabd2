"""Problems, targets, boards and workers by REST; all public."""

from datetime import timedelta

from django.conf import settings
from django.http import Http404, HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from evaluator import HARNESS_VERSION, SCORING_VERSION
from evaluator.records.candidate import MAX_SOURCE_BYTES, MAX_SOURCE_FILES
from evaluator.targets import TARGETS
from leaderboard.api import schema
from leaderboard.api.representations import board_json, problem_json, target_json, worker_json
from leaderboard.models import Attempt, Problem, Worker
from leaderboard.services.boards import board_read
from leaderboard.services.workers import attempts_lost
from leaderboard.views.freshness import board_tag, not_modified, tagged
from leaderboard.views.pages.boards import board_csv

MOST_WORKERS = 200


class Root(APIView):
    @extend_schema(responses=schema.AnyObject)
    def get(self, request: Request) -> Response:
        """Where things are, and the limits."""
        names = ("submissions", "model-runs", "problems", "targets", "workers", "schema")
        return Response(
            {
                "harness_version": HARNESS_VERSION,
                "scoring_version": SCORING_VERSION,
                "limits": {
                    "body_bytes": settings.PTXBOARD_MAX_BODY_BYTES,
                    "source_bytes": MAX_SOURCE_BYTES,
                    "source_files": MAX_SOURCE_FILES,
                    "in_flight_submissions": settings.PTXBOARD_IN_FLIGHT_LIMIT,
                    "open_model_runs": settings.PTXBOARD_RUN_LIMIT,
                    "parallel_trajectories": settings.PTXBOARD_PARALLEL_LIMIT,
                },
                **{name: reverse(f"api:{name}", request=request) for name in names},
            }
        )


class ProblemList(APIView):
    @extend_schema(responses=schema.AnyObject(many=True))
    def get(self, request: Request) -> Response:
        """The problem set in its order: definition, workload, tolerance, prototypes, boards."""
        return Response([problem_json(row, request) for row in Problem.objects.current()])


class ProblemOne(APIView):
    @extend_schema(responses=schema.AnyObject)
    def get(self, request: Request, name: str) -> Response:
        return Response(problem_json(find_problem(name), request))


class TargetList(APIView):
    @extend_schema(responses=schema.AnyObject(many=True))
    def get(self, request: Request) -> Response:
        """What kernels are built for and ranked on, and how many workers could run one now."""
        return Response([target_json(target) for target in TARGETS.values()])


class BoardOne(APIView):
    @extend_schema(responses=schema.Board)
    def get(self, request: Request, target: str, problem: str) -> HttpResponse | Response:
        """Ranked by speedup, verified rows only; `?format=csv` gives the same rows as a table.

        Send the ETag back as If-None-Match: 304 says that the board is as it was.
        """
        row = find_problem(problem)
        _check_offer(target, row)
        if request.query_params.get("format") == "csv":
            return board_csv(request._request, target, problem)
        tag = board_tag(target=target, problem=row, more=("json", request.get_host()))
        if answer := not_modified(request._request, tag):
            return answer
        return tagged(Response(board_json(board_read(target=target, problem=row), request)), tag)


class BoardCsv(APIView):
    @extend_schema(responses={(200, "text/csv"): str})
    def get(self, request: Request, target: str, problem: str) -> HttpResponse:
        _check_offer(target, find_problem(problem))
        return board_csv(request._request, target, problem)


def find_problem(name: str) -> Problem:
    row = Problem.objects.current().filter(name=name).first() if "\x00" not in name else None
    if row is None:
        known = ", ".join(Problem.objects.current().values_list("name", flat=True))
        raise Http404(f"There is no problem {name[:100]!r}; known problems: {known}.")
    return row


def _check_offer(target: str, problem: Problem) -> None:
    if target not in TARGETS:
        raise Http404(f"There is no target {target[:60]!r}; known targets: {', '.join(TARGETS)}.")
    if target not in problem.targets:
        offered = ", ".join(problem.targets)
        raise Http404(f"{problem.name} is not offered on {target}; it is on: {offered}.")


class WorkerList(APIView):
    @extend_schema(responses=schema.AnyObject(many=True))
    def get(self, request: Request) -> Response:
        """The workers heard last, at most 200: machine, versions, state, what each holds."""
        now = timezone.now()
        held: dict[str, list[str]] = {}
        for pk, worker in Attempt.objects.filter(state=Attempt.State.RUNNING).values_list(
            "pk", "worker"
        ):
            held.setdefault(worker, []).append(str(pk))
        lost = attempts_lost(since=now - timedelta(days=1))
        return Response(
            [
                worker_json(
                    row,
                    online=row.is_online(now),
                    busy_with=held.get(row.name, []),
                    lost_count=lost.get(row.name, 0),
                )
                for row in Worker.objects.order_by("-last_seen", "name")[:MOST_WORKERS]
            ]
        )
