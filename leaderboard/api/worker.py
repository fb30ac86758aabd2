"""The worker API, as `evaluator.records.worker_api` has it. Idempotent where it writes."""

from typing import Any, TypeVar

from django.conf import settings
from django.http import FileResponse, HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluator.records.base import Record, strict_loads
from evaluator.records.validation import field_problems
from evaluator.records.worker_api import (
    ATTEMPT_HEADER,
    FENCE_HEADER,
    ClaimRequest,
    Completion,
    Heartbeat,
    WorkerHello,
)
from leaderboard.api import schema
from leaderboard.api.artifacts import artifact_response
from leaderboard.api.authentication import IsWorker, WorkerTokenAuthentication
from leaderboard.api.bodies import body_chunks, plain_request, read_json
from leaderboard.refusals import FieldError, InvalidBody
from leaderboard.services.artifacts import artifact_permit, artifact_put
from leaderboard.services.attempts import attempt_claim, attempt_heartbeat
from leaderboard.services.completion import attempt_complete
from leaderboard.services.permits import permit_attempt, permit_offer
from leaderboard.services.stages import stage_post
from leaderboard.services.workers import worker_hello, worker_seen

RecordT = TypeVar("RecordT", bound=Record)


class WorkerView(APIView):
    authentication_classes = [WorkerTokenAuthentication]
    permission_classes = [IsWorker]


def read_record(request: Request, model: type[RecordT]) -> RecordT:
    """The body as `model`. Raises InvalidBody with every field that does not fit."""
    value = read_json(request).value
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = [
            FieldError(pointer=one.pointer, message=one.rule, seen=one.seen)
            for one in field_problems(error, value)
        ]
        raise InvalidBody(f"the body is no {model.__name__}", errors=errors) from error


def record_response(record: Record) -> Response:
    return Response(strict_loads(record.to_json()))


class Hello(WorkerView):
    @extend_schema(request=schema.AnyObject, responses=schema.AnyObject)
    def post(self, request: Request) -> Response:
        hello = read_record(request, WorkerHello)
        permit_offer(token=request.auth, hello=hello)
        worker = worker_hello(hello=hello, token=request.auth)
        return Response({"name": worker.name, "state": worker.state})


class Claim(WorkerView):
    @extend_schema(request=schema.AnyObject, responses={200: schema.AnyObject, 204: None})
    def post(self, request: Request) -> Response:
        claim = read_record(request, ClaimRequest)
        permit_offer(token=request.auth, hello=claim.worker)
        if claim.attempt is not None:
            permit_attempt(token=request.auth, attempt_id=claim.attempt)
        worker_seen(hello=claim.worker, token=request.auth)
        order = attempt_claim(hello=claim.worker, attempt_id=claim.attempt)
        return Response(status=204) if order is None else record_response(order)


class AttemptHeartbeat(WorkerView):
    @extend_schema(request=schema.AnyObject, responses=schema.AnyObject)
    def post(self, request: Request, attempt_id: str) -> Response:
        permit_attempt(token=request.auth, attempt_id=attempt_id)
        beat = read_record(request, Heartbeat)
        return record_response(attempt_heartbeat(attempt_id=attempt_id, beat=beat))


class AttemptStages(WorkerView):
    @extend_schema(request=schema.AnyObject, responses=schema.AnyObject)
    def post(self, request: Request, attempt_id: str) -> Response:
        permit_attempt(token=request.auth, attempt_id=attempt_id)
        body = read_json(request, settings.PTXBOARD_MAX_STAGE_BYTES).value
        record = stage_post(attempt_id=attempt_id, fence=_fence(body), value=body.get("result"))
        return Response({"stage": record.stage, "digest": record.digest})


def _fence(body: dict[str, Any]) -> str:
    fence = body.get("fence")
    if not isinstance(fence, str):
        error = FieldError(pointer="fence", message="required: the fence of the claim")
        raise InvalidBody("the body has no fence", errors=[error])
    return fence


class AttemptComplete(WorkerView):
    @extend_schema(request=schema.AnyObject, responses=schema.AnyObject)
    def post(self, request: Request, attempt_id: str) -> Response:
        permit_attempt(token=request.auth, attempt_id=attempt_id)
        completion = read_record(request, Completion)
        attempt = attempt_complete(attempt_id=attempt_id, completion=completion)
        return Response({"attempt": str(attempt.pk), "state": attempt.state})


class WorkerArtifact(WorkerView):
    @extend_schema(responses={(200, "application/octet-stream"): bytes})
    def get(self, request: Request, sha256: str) -> FileResponse:
        return artifact_response(sha256)

    @extend_schema(
        request={"application/octet-stream": bytes},
        responses={201: schema.AnyObject, 200: schema.AnyObject},
    )
    def put(self, request: Request, sha256: str) -> HttpResponse | Response:
        attempt_id = request.headers.get(ATTEMPT_HEADER, "")
        permit_attempt(token=request.auth, attempt_id=attempt_id)
        artifact_permit(attempt_id=attempt_id, fence=request.headers.get(FENCE_HEADER, ""))
        chunks = body_chunks(plain_request(request), settings.PTXBOARD_MAX_ARTIFACT_BYTES)
        artifact, created = artifact_put(sha256=sha256, chunks=chunks)
        body = {"sha256": artifact.sha256, "byte_count": artifact.byte_count}
        return Response(body, status=201 if created else 200)
