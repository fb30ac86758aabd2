"""The broker in a folder: readers never see half a message."""

import threading
from queue import Empty

from kombu import Connection

from evaluator.broker import transport_options
from evaluator.message_files import Transport

MESSAGES = 1500


def connection(folder):
    options = transport_options("filesystem://", folder)
    return Connection("filesystem://", transport_options=options)


def test_a_message_is_whole_as_soon_as_a_reader_sees_it(tmp_path):
    seen, errors, over = [], [], threading.Event()

    def read() -> None:
        with connection(tmp_path) as broker:
            channel = broker.channel()
            try:
                while not over.is_set():
                    try:
                        seen.append(channel._get("io")["number"])
                    except Empty:
                        continue
            except ValueError as error:
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    with connection(tmp_path) as broker:
        assert isinstance(broker.transport, Transport)
        channel = broker.channel()
        for number in range(MESSAGES):
            channel._put("io", {"number": number})
        while len(seen) < MESSAGES and not errors:
            over.wait(0.01)
    over.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert sorted(seen) == list(range(MESSAGES))


def test_a_queue_with_a_dot_in_its_name_gets_its_own_messages_only(tmp_path):
    with connection(tmp_path) as broker:
        channel = broker.channel()
        channel._put("gpu.host", {"number": 1})
        channel._put("io", {"number": 2})
        assert channel._get("gpu.host") == {"number": 1}
        assert channel._get("io") == {"number": 2}
    assert [path.name for path in (tmp_path / "messages").iterdir()] == []
