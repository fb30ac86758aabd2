"""A small load generator: keep-alive connections that ask as fast as they are answered."""

import http.client
import threading
import time
from collections.abc import Sequence


def ask(
    port: int, addresses: Sequence[str], *, seconds: float, connections: int, tag: bool = False
) -> float:
    """Answers a second; with `tag` each request sends the ETag back and wants a 304."""
    counts = [0] * connections
    errors: list[BaseException] = []
    deadline = time.monotonic() + seconds

    def work(place: int) -> None:
        try:
            counts[place] = _work(port, addresses, place, deadline, tag)
        except BaseException as error:  # told to whoever waits below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts) / seconds


def _work(port: int, addresses: Sequence[str], place: int, deadline: float, tag: bool) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {}
    if tag:
        connection.request("GET", addresses[0])
        answer = connection.getresponse()
        answer.read()
        headers = {"If-None-Match": answer.headers["ETag"]}
    count = 0
    while time.monotonic() < deadline:
        connection.request("GET", addresses[(place + count) % len(addresses)], headers=headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 304):
            raise RuntimeError(f"{addresses[0]}: status {answer.status}")
        if tag and answer.status == 200:  # a page says its age, which has just changed
            headers = {"If-None-Match": answer.headers["ETag"]}
            continue
        count += 1
    return count
