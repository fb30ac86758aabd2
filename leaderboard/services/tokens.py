"""Making and finding tokens: the secret is shown once, its SHA-256 is kept."""

import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evaluator.records.base import sha256_hex
from leaderboard.models import ApiToken
from leaderboard.services.audit import audit_append

PREFIXES = {ApiToken.Scope.SUBMIT: "ptxs_", ApiToken.Scope.WORKER: "ptxw_"}
USE_NOTED_EVERY = timedelta(minutes=1)


@transaction.atomic
def token_create(
    *,
    user: User | None = None,
    worker_name: str = "",
    label: str = "",
    expires_at: datetime | None = None,
    secret: str = "",
) -> tuple[ApiToken, str]:
    """A submit token of a user or a worker token of a machine, with its secret."""
    scope = ApiToken.Scope.SUBMIT if user else ApiToken.Scope.WORKER
    secret = secret or PREFIXES[scope] + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        digest=sha256_hex(secret.encode()),
        prefix=secret[:10],
        scope=scope,
        label=label,
        user=user,
        worker_name=worker_name,
        expires_at=expires_at,
    )
    owner = user.get_username() if user else worker_name
    audit_append(
        actor="operator", action="token.created", subject=token.prefix, detail={"for": owner}
    )
    return token, secret


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
