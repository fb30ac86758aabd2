"""One step of a trajectory: close the turn that was evaluated, then make the call that is due."""

import logging

from pydantic import SecretStr

from leaderboard.endpoints.clients import complete
from leaderboard.endpoints.endpoint import Endpoint
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.keys import KeyUnreadable, decrypt
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.endpoints.replies import Reply
from leaderboard.models import ModelRun, Turn
from leaderboard.services.model_runs.claiming import kept_alive, trajectory_claim
from leaderboard.services.model_runs.closing import turn_close
from leaderboard.services.model_runs.storing import Call, call_failed, call_of, turn_store

log = logging.getLogger(__name__)


def trajectory_advance(*, trajectory_id: str) -> Turn | None:
    """At most one call of the model; the turn that it brought, or None.

    Doing nothing is right where nothing is due, so a ring too many does no harm. The database is
    held only in short transactions, never during the call.
    """
    turn_close(trajectory_id)
    claim = trajectory_claim(trajectory_id)
    if claim is None:
        return None
    call = call_of(claim)
    try:
        with kept_alive(claim):
            reply = _ask(call)
    except EndpointError as error:
        log.info("trajectory %s: %s: %s", trajectory_id, error.kind, error.message)
        call_failed(call, error)
        return None
    return turn_store(call, reply)


def _ask(call: Call) -> Reply:
    """Raises EndpointError."""
    trajectory = call.claim.trajectory
    run = trajectory.run
    label = f"{run.pk}/{trajectory.variant.slug}/{trajectory.number}/{call.claim.number - 1}"
    parameters = Parameters.model_validate(run.parameters)
    return complete(endpoint_of(run), call.messages, parameters, label=label)


def endpoint_of(run: ModelRun) -> Endpoint:
    """With the run's key in clear, which leaves this process in a request's header only.

    Raises EndpointError where the stored key cannot be read any more.
    """
    try:
        key = decrypt(run.key_ciphertext) if run.key_ciphertext else ""
    except KeyUnreadable as error:
        raise EndpointError(ErrorKind.AUTH, str(error)) from None
    return Endpoint(api=Api(run.api), base_url=run.base_url, model=run.model, key=SecretStr(key))
