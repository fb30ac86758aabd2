"""One call to a model endpoint: messages in, one reply or one sorted error out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.parameters import Parameters
from leaderboard.endpoints.replies import Reply

if TYPE_CHECKING:
    from evaluator.agent.messages import Message


def complete(
    endpoint: Endpoint,
    messages: "Sequence[Message]",
    parameters: Parameters,
    *,
    label: str = "",
    limits: Limits | None = None,
) -> Reply:
    """Ask once; no retries. `label` goes out only with `parameters.send_labels`.

    Blocks for at most `limits.total_seconds`, PTXBOARD_ENDPOINT_SECONDS where none are given.
    Raises EndpointError and nothing else.
    """
    raise NotImplementedError
