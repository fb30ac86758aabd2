"""Error answers outside views: problem+json below /api/, pages elsewhere."""

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from leaderboard.api.problems import problem_response


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        return problem_response(status=400, detail="The request cannot be understood.")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        return problem_response(status=403, detail=str(exception) or "You may not do this.")
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        detail = f"There is nothing at {request.path[:200]}; /api/v1/ lists what there is."
        return problem_response(status=404, detail=detail)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if _is_api(request):
        detail = "An error of ours, which is logged. The same request may be sent again."
        return problem_response(status=500, detail=detail)
    return defaults.server_error(request)
