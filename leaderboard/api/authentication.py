"""Tokens in the Authorization header: `Token ...` of people, `Worker ...` of machines.

Reading is public. A token that is wrong is refused everywhere, so that nobody works unnoticed
as a visitor.
"""

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from leaderboard.models import ApiToken
from leaderboard.services.tokens import token_find

SCHEMES = {"token": ApiToken.Scope.SUBMIT, "worker": ApiToken.Scope.WORKER}


class TokenAuthentication(BaseAuthentication):
    """request.auth is the ApiToken; request.user its user, or nobody for a worker."""

    challenge = 'Token realm="ptxboard"'

    def authenticate(self, request: Request) -> tuple[object, ApiToken] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        scheme, _, secret = header.partition(" ")
        if scheme.lower() not in SCHEMES or not secret.strip():
            raise AuthenticationFailed(
                f"the Authorization scheme is {scheme[:20]!r}; send 'Token ...' or 'Worker ...'"
            )
        token = token_find(secret=secret.strip())
        if token is None:
            raise AuthenticationFailed(
                "this token is not known here; your account page makes tokens"
            )
        if refusal := token.refusal(timezone.now()):
            raise AuthenticationFailed(f"{refusal}; make a new one")
        if token.user is not None and not token.user.is_active:
            raise AuthenticationFailed("the account of this token is closed")
        return token.user or AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:
        return self.challenge


class SubmitTokenAuthentication(TokenAuthentication):
    """For everything that people and their scripts call."""


class WorkerTokenAuthentication(TokenAuthentication):
    """For the worker API."""

    challenge = 'Worker realm="ptxboard"'


class CanSubmit(BasePermission):
    """A person's token; a worker's says 403 and why."""

    def has_permission(self, request: Request, view: object) -> bool:
        if request.auth is None:
            raise NotAuthenticated("send 'Authorization: Token ...'; your account page makes one")
        if request.auth.scope != ApiToken.Scope.SUBMIT:
            raise PermissionDenied(
                "this is a worker token, which only evaluates; submit with a token of scope submit"
            )
        return True


class CanSubmitOrRead(CanSubmit):
    def has_permission(self, request: Request, view: object) -> bool:
        return request.method in ("GET", "HEAD", "OPTIONS") or super().has_permission(request, view)


class IsWorker(BasePermission):
    def has_permission(self, request: Request, view: object) -> bool:
        if request.auth is None:
            raise NotAuthenticated("send 'Authorization: Worker ...'; the operator makes one")
        if request.auth.scope != ApiToken.Scope.WORKER:
            raise PermissionDenied("this token submits; the worker API needs one of scope worker")
        return True
