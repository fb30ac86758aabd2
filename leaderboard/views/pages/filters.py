"""Filters of lists, which stand in the URL."""

from collections.abc import Sequence

from django.http import Http404, HttpRequest


def choice(request: HttpRequest, name: str, allowed: Sequence[str]) -> str:
    """A filter of the URL, "" without one; Http404 names the words that it takes."""
    value = request.GET.get(name, "")
    if value and value not in allowed:
        raise Http404(f"There is no {name} {value[:60]!r}. Choose one of: {', '.join(allowed)}.")
    return value
