"""Errors of the API as RFC 9457 problem+json: one shape, whatever went wrong."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from leaderboard.refusals import FieldError, QuotaReached, Refusal

MEDIA_TYPE = "application/problem+json"


def problem_body(
    *,
    slug: str,
    title: str,
    status: int,
    detail: str,
    errors: Iterable[FieldError] = (),
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """type, title, status, detail, errors: [{pointer, message, seen, allowed}], and more."""
    return {
        "type": f"/rules/#error-{slug}",
        "title": title,
        "status": status,
        "detail": detail,
        "errors": [error.to_json() for error in errors],
        **(extra or {}),
    }


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """What DRF calls for an exception in a view; None leaves it to Django as a 500."""
    if isinstance(error, Refusal):
        return _refused(error)
    if isinstance(error, Http404):
        error = exceptions.NotFound(str(error) or "There is nothing at this address.")
    if isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied(str(error) or None)
    if isinstance(error, exceptions.APIException):
        return _from_framework(error, context)
    return None


def _refused(refusal: Refusal) -> Response:
    headers = {}
    if isinstance(refusal, QuotaReached):
        headers["Retry-After"] = str(refusal.retry_after_seconds)
    body = problem_body(
        slug=refusal.slug,
        title=refusal.title,
        status=refusal.status,
        detail=refusal.detail,
        errors=refusal.errors,
        extra=refusal.extra,
    )
    return Response(body, status=refusal.status, headers=headers, content_type=MEDIA_TYPE)


def _from_framework(error: exceptions.APIException, context: dict[str, Any]) -> Response:
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    body = problem_body(
        slug=str(error.default_code).replace("_", "-"),
        title=HTTPStatus(error.status_code).phrase,
        status=error.status_code,
        detail=str(error.detail),
    )
    return Response(body, status=error.status_code, headers=headers, content_type=MEDIA_TYPE)


def problem_response(*, status: int, detail: str) -> JsonResponse:
    """The same shape where no view of the API was reached."""
    phrase = HTTPStatus(status).phrase
    slug = phrase.lower().replace(" ", "-")
    body = problem_body(slug=slug, title=phrase, status=status, detail=detail)
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)
