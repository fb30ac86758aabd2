"""Making and finding tokens: the secret is shown once, its SHA-256 is kept."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evaluator.records.base import sha256_hex
from evaluator.records.verdicts import Lane
from evaluator.targets import TARGETS
from leaderboard.models import ApiToken
from leaderboard.services.audit import audit_append

PREFIXES = {ApiToken.Scope.SUBMIT: "ptxs_", ApiToken.Scope.WORKER: "ptxw_"}
USE_NOTED_EVERY = timedelta(minutes=1)


class BadScope(ValueError):
    """A worker token that would open nothing, or names what there is not."""


@transaction.atomic
def token_create(
    *,
    user: User | None = None,
    worker_name: str = "",
    lanes: Sequence[str] = (),
    targets: Sequence[str] = (),
    label: str = "",
    expires_at: datetime | None = None,
    secret: str = "",
) -> tuple[ApiToken, str]:
    """A submit token of a user or a worker token of a machine, with its secret.

    A worker's token serves the lanes and targets named here; a target implies its GPU lane.
    Raises BadScope.
    """
    served = _served_lanes(lanes, targets) if not user else []
    scope = ApiToken.Scope.SUBMIT if user else ApiToken.Scope.WORKER
    secret = secret or PREFIXES[scope] + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        digest=sha256_hex(secret.encode()),
        prefix=secret[:10],
        scope=scope,
        label=label,
        user=user,
        worker_name=worker_name,
        lanes=served,
        targets=list(dict.fromkeys(targets)),
        expires_at=expires_at,
    )
    owner = user.get_username() if user else worker_name
    audit_append(
        actor="operator",
        action="token.created",
        subject=token.prefix,
        detail={"for": owner, "lanes": token.lanes, "targets": token.targets},
    )
    return token, secret


@transaction.atomic
def token_revoke(*, token: ApiToken, actor: str) -> bool:
    """False where it was revoked before."""
    now = timezone.now()
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)
    if revoked:
        audit_append(actor=actor, action="token.revoked", subject=token.prefix)
    return bool(revoked)


def _served_lanes(lanes: Sequence[str], targets: Sequence[str]) -> list[str]:
    known = [lane.value for lane in Lane]
    if wrong := [one for one in lanes if one not in known]:
        raise BadScope(f"there is no lane {wrong[0]!r}; lanes are: {', '.join(known)}")
    if wrong := [one for one in targets if one not in TARGETS]:
        raise BadScope(f"there is no target {wrong[0]!r}; targets are: {', '.join(TARGETS)}")
    if not targets and Lane.BUILD not in lanes:
        raise BadScope(
            "a worker token names what it serves: lane build, targets "
            f"({', '.join(TARGETS)}), or both; {'lane gpu alone' if lanes else 'nothing'} was given"
        )
    return [one for one in known if one in lanes or (one == Lane.GPU and targets)]


def token_find(*, secret: str) -> ApiToken | None:
    """The token whose secret this is, whatever its scope or state; notes that it was used."""
    digest = sha256_hex(secret.encode(errors="replace"))
    token = ApiToken.objects.select_related("user").filter(digest=digest).first()
    if token is None:
        return None
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at < now - USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
