"""Filters of lists, which stand in the URL."""

from collections.abc import Sequence

from django.http import Http404, HttpRequest


def choice(request: HttpRequest, name: str, allowed: Sequence[str]) -> str:
    """A filter of the URL, "" without one; Http404 names the words that it takes."""
    value = request.GET.get(name, "")
    if value and value not in allowed:
        raise Http404(f"There is no {name} {value[:60]!r}. Choose one of: {', '.join(allowed)}.")
    return value


def page_number(request: HttpRequest) -> int:
    """`?page=`, counted from 1; Http404 for what is no such number."""
    value = request.GET.get("page", "1")
    if not value.isascii() or not value.isdigit() or not 1 <= len(value) <= 9 or int(value) < 1:
        raise Http404(f"There is no page {value[:60]!r}; pages are counted from 1.")
    return int(value)


def page_exists(number: int, count: int) -> None:
    """Http404 says how many pages there are; an empty list has its first page."""
    if number > max(1, count):
        raise Http404(f"There is no page {number}; the last one is {max(1, count)}.")
