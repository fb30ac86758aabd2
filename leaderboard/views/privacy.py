"""What caches and crawlers may keep."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

ROBOTS = """User-agent: *
Disallow: /api/
Disallow: /admin/
Disallow: /account/
Disallow: /sign-in/
"""


def private_pages(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[..., object]:
    """Pages of a signed-in person carry their name and forms: no shared cache keeps them.

    A page that says something about caches itself is left as it is.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        signed_in = settings.SESSION_COOKIE_NAME in request.COOKIES
        if signed_in and not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_cache=True)
        return response

    return answer


def robots(request: HttpRequest) -> HttpResponse:
    """Boards and pages may be found; archives and evidence, costly to make, need no crawler."""
    return HttpResponse(ROBOTS, content_type="text/plain; charset=utf-8")
