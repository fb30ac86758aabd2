"""Answers that were made for a tag are given again for it: a board is rendered once a change.

A tag covers what an answer's data are, or the answer has none and is not kept; address, host and
theme are added here. What is kept is bytes and their type: cookies, policies and other headers are
made for each request. Each process keeps its own, least recently used first out.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from django.http import HttpRequest, HttpResponse

MOST_BYTES = 64 << 20
MOST_BYTES_EACH = 4 << 20


class KeptAnswers:
    """By tag, at most `most_bytes` together."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.byte_count = 0
        self._found: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._lock = Lock()
        self._makers: dict[str, tuple[Lock, int]] = {}

    @contextmanager
    def making(self, tag: str) -> Iterator[None]:
        """Held by one thread at a time for each tag."""
        with self._lock:
            lock, count = self._makers.get(tag, (Lock(), 0))
            self._makers[tag] = (lock, count + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, count = self._makers.pop(tag)
                if count > 1:
                    self._makers[tag] = (lock, count - 1)

    def get(self, tag: str) -> HttpResponse | None:
        with self._lock:
            if tag not in self._found:
                return None
            self._found.move_to_end(tag)
            content, kind = self._found[tag]
        return HttpResponse(content, content_type=kind)

    def put(self, tag: str, content: bytes, kind: str) -> None:
        if len(content) > min(self.most_bytes, MOST_BYTES_EACH):
            return
        with self._lock:
            if tag in self._found:
                return
            self._found[tag] = (content, kind)
            self.byte_count += len(content)
            while self.byte_count > self.most_bytes:
                _, (old, _) = self._found.popitem(last=False)
                self.byte_count -= len(old)

    def clear(self) -> None:
        with self._lock:
            self._found.clear()
            self.byte_count = 0


ANSWERS = KeptAnswers()


def kept(request: HttpRequest, tag: str | None, make: Callable[[], HttpResponse]) -> HttpResponse:
    """The answer of this tag, made where it is not here; one that sets cookies is not kept.

    Of many who ask at once for what has just changed, one makes it and the others wait for that.
    """
    if tag is None:
        return make()
    theme = request.COOKIES.get("theme", "")[:10]
    address = f"{request.scheme}://{request.get_host()}{request.get_full_path()}"
    key = f"{tag} {theme!r} {address}"
    if (answer := ANSWERS.get(key)) is not None:
        return answer
    with ANSWERS.making(key):
        if (answer := ANSWERS.get(key)) is not None:
            return answer
        answer = make()
        if answer.status_code == 200 and not answer.cookies and not answer.streaming:
            ANSWERS.put(key, answer.content, answer["Content-Type"])
        return answer
