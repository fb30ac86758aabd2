"""Names and options that both ends of the broker share: the site rings, workers answer.

A message carries one id, of an attempt or a trajectory, and nothing else; losing one costs seconds
(the site rings again), doubling one costs nothing (the claim decides).
"""

from pathlib import Path

from kombu import Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "evaluator.message_files:Transport"

EVALUATE_TASK = "ptxboard.evaluate"
ADVANCE_TASK = "leaderboard.advance_trajectory"
BUILD_QUEUE = "build"
IO_QUEUE = "io"
# Calls of models take minutes; on a queue of their own they hold up no periodic duty.
MODELS_QUEUE = "models"

POLLING_SECONDS = 0.05
VISIBILITY_SECONDS = 6 * 3600


def transport_options(broker_url: str, folder: Path) -> dict[str, object]:
    """What kombu needs for this kind of broker; the file-system one polls, 1 s apart by default."""
    if broker_url.startswith("filesystem"):
        messages, control = folder / "messages", folder / "control"
        for path in (messages, control):
            path.mkdir(parents=True, exist_ok=True)
        return {
            "data_folder_in": str(messages),
            "data_folder_out": str(messages),
            "control_folder": str(control),
            "polling_interval": POLLING_SECONDS,
        }
    if broker_url.startswith("redis"):
        return {
            "visibility_timeout": VISIBILITY_SECONDS,
            "health_check_interval": 25,
            "socket_keepalive": True,
            "socket_connect_timeout": 5,
            "socket_timeout": 30,
        }
    return {}


def queue(name: str) -> Queue:
    return Queue(name, Exchange(name, type="direct"), routing_key=name)
