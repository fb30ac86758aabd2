"""Kombu's broker in a folder, with one thing mended: a message appears whole or not at all.

Kombu opens a message's file under its final name and then writes it. A reader that looks in between
takes an empty file away, cannot read it, and its whole worker ends. Here the file is written beside
and renamed, which is one step for every reader.

Source: kombu 5.6, transport/filesystem.py, Channel._put and _get.
"""

import os
import uuid
from pathlib import Path
from time import monotonic_ns
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Names sort by time, as readers expect; they do not look at `.part` files."""
        name = f"{monotonic_ns() // 1_000_000}_{uuid.uuid4()}.{queue}.msg"
        whole = Path(self.data_folder_out) / name
        part = whole.with_name(f"{name}.part")
        try:
            part.write_text(dumps(payload))
            os.replace(part, whole)
        except OSError as error:
            raise ChannelError(f"cannot add a message to {self.data_folder_out}") from error


class Transport(filesystem.Transport):
    Channel = Channel
