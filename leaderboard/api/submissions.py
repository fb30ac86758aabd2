"""Submissions by REST: hand in, read, cancel, run again, take home."""

import re
import tempfile
from typing import Any
from uuid import UUID

from django.http import FileResponse, Http404, HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluator.records.verdicts import Verdict
from evaluator.targets import TARGETS
from leaderboard.api import schema
from leaderboard.api.authentication import CanSubmit, CanSubmitOrRead
from leaderboard.api.bodies import read_json
from leaderboard.api.pagination import NewestFirst
from leaderboard.api.representations import submission_brief, submission_json
from leaderboard.models import Submission
from leaderboard.refusals import DuplicateContent, FieldError, InvalidBody, InvalidFilter
from leaderboard.services.bundle import bundle_write
from leaderboard.services.drafts import SUBMISSION_FIELDS, Draft, draft_from_json
from leaderboard.services.entrants import entrant_of
from leaderboard.services.solutions import draft_from_solution
from leaderboard.services.submissions import (
    Created,
    submission_cancel,
    submission_create,
    submission_of_key,
    submission_rerun,
)

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,200}")
SPOOLED_BYTES = 8 << 20
FILTERS = ("problem", "target", "entrant", "state", "verdict")
CHOICES = {
    "target": list(TARGETS),
    "state": Submission.State.values,
    "verdict": [verdict.value for verdict in Verdict],
}


class SubmissionList(APIView):
    permission_classes = [CanSubmitOrRead]

    @extend_schema(
        operation_id="submissions_list",
        responses=schema.SubmissionPage,
        parameters=schema.LIST_PARAMETERS,
    )
    def get(self, request: Request) -> Response:
        """The newest first, by cursor; filters: problem, target, entrant, state, verdict, mine."""
        pages = NewestFirst()
        rows = pages.paginate_queryset(_filtered(request), request, view=self) or []
        return pages.get_paginated_response([submission_brief(row, request) for row in rows])

    @extend_schema(
        request=schema.SubmissionBody,
        responses={201: schema.SubmissionDetail, 200: schema.SubmissionDetail},
        parameters=[schema.IDEMPOTENCY_PARAMETER],
    )
    def post(self, request: Request) -> Response:
        """Hand in a kernel. With the same Idempotency-Key and body: the same submission, 200."""
        key = idempotency_key(request)
        body = read_json(request)
        entrant = entrant_of(user=request.user)
        earlier = submission_of_key(entrant=entrant, idempotency_key=key, body_digest=body.digest)
        if earlier:
            return _answer(Created(submission=earlier, created=False), request, {})
        try:
            created = submission_create(
                entrant=entrant,
                draft=_draft(body.value),
                idempotency_key=key,
                body_digest=body.digest,
            )
        except DuplicateContent as refusal:
            brief = submission_brief(refusal.submission, request)
            refusal.extra = {
                "duplicate_of": {name: brief[name] for name in ("id", "url", "html_url", "state")}
            }
            raise
        return _answer(created, request, body.value)


def _filtered(request: Request) -> Any:
    rows = Submission.objects.for_list()
    lookups = {"problem": "problem__name", "entrant": "entrant__slug"}
    for name in FILTERS:
        if value := request.query_params.get(name):
            check_filter(name, value, CHOICES.get(name))
            rows = rows.filter(**{lookups.get(name, name): value})
    if request.query_params.get("mine") and request.user.is_authenticated:
        rows = rows.filter(entrant__user=request.user)
    return rows


def check_filter(name: str, value: str, allowed: list[str] | None) -> None:
    """Raises InvalidFilter: a word that nothing can match is a mistake, not an empty list."""
    if "\x00" in value or (allowed and value not in allowed):
        message = f"there is no {name} {value[:60]!r}"
        error = FieldError(pointer=name, message=message, seen=value[:60], allowed=allowed)
        raise InvalidFilter(message, errors=[error])


def idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        message = f"Idempotency-Key {key[:40]!r}: use 1 to 200 visible ASCII characters"
        raise InvalidBody(message, errors=[FieldError(pointer="Idempotency-Key", message=message)])
    return key


def _draft(body: dict[str, Any]) -> Draft:
    """Our own body, or {"solution": a FlashInfer-Trace solution, "target": ...}."""
    if "solution" in body:
        return draft_from_solution(body["solution"], body.get("target"))
    return draft_from_json(body)


def _answer(created: Created, request: Request, body: dict[str, Any]) -> Response:
    value = submission_json(created.submission, request)
    known = SUBMISSION_FIELDS if "solution" not in body else {"solution", "target"}
    value["ignored_fields"] = sorted(set(body) - known)
    status = 201 if created.created else 200
    return Response(value, status=status, headers={"Location": value["url"]})


def find_submission(submission_id: UUID) -> Submission:
    found = Submission.objects.select_related("entrant", "problem").filter(pk=submission_id).first()
    if found is None:
        raise Http404(f"There is no submission {submission_id}.")
    return found


class SubmissionOne(APIView):
    @extend_schema(responses=schema.SubmissionDetail)
    def get(self, request: Request, submission_id: UUID) -> Response:
        """State, verdict, stages with their evidence, queue, score and sources."""
        return Response(submission_json(find_submission(submission_id), request))


class SubmissionCancel(APIView):
    permission_classes = [CanSubmit]

    @extend_schema(request=None, responses=schema.SubmissionDetail)
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Stop a queued or running submission; it counts against no quota."""
        submission = find_submission(submission_id)
        submission_cancel(submission=submission, user=request.user)
        return Response(submission_json(find_submission(submission_id), request))


class SubmissionRerun(APIView):
    permission_classes = [CanSubmit]

    @extend_schema(request=None, responses={202: schema.SubmissionDetail})
    def post(self, request: Request, submission_id: UUID) -> Response:
        """Evaluate again: after a fault of ours, a cancel or INCONCLUSIVE; staff always."""
        submission_rerun(submission=find_submission(submission_id), user=request.user)
        return Response(submission_json(find_submission(submission_id), request), status=202)


class SubmissionBundle(APIView):
    @extend_schema(responses={(200, "application/zip"): bytes})
    def get(self, request: Request, submission_id: UUID) -> HttpResponse:
        """Everything as one zip, with SHA-256 of each file and the chain of stages."""
        submission = find_submission(submission_id)
        spooled = tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115
        bundle_write(submission=submission, out=spooled)
        spooled.seek(0)
        return FileResponse(
            spooled,
            as_attachment=True,
            filename=f"ptxboard_{submission.pk}.zip",
            content_type="application/zip",
        )
