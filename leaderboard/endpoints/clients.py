"""One call to a model endpoint: messages in, one reply or one sorted error out."""

from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from evaluator.agent.messages import Message
from leaderboard.endpoints.egress import Limits
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.parameters import Parameters
from leaderboard.endpoints.replies import Reply


def complete(
    endpoint: Endpoint,
    messages: Sequence[Message],
    parameters: Parameters,
    *,
    label: str = "",
    limits: Limits | None = None,
) -> Reply:
    """Ask once; no retries. `label` goes out only with `parameters.send_labels`.

    Blocks for at most `limits.total_seconds`, PTXBOARD_ENDPOINT_SECONDS where none are given.
    Raises EndpointError, which has no cause, so that no traceback leads to the key; nothing else
    but ImproperlyConfigured, for settings of the site that cannot be read.
    """
    # here, since the official clients take seconds to import and only calls need them
    from leaderboard.endpoints.official import call, sorted_error

    limits = limits or Limits(total_seconds=settings.PTXBOARD_ENDPOINT_SECONDS)
    try:
        return call(endpoint, messages, parameters, label, limits)
    except ImproperlyConfigured:
        raise
    except Exception as error:
        failure = sorted_error(error, endpoint)
    raise failure
