"""Signing in and out, by Django's own views; one door for everybody, with a limit on guessing."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from leaderboard.refusals import TooManySignIns
from leaderboard.services.sign_in import sign_in_succeeded, sign_in_try


class SignIn(LoginView):
    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        who = {"username": request.POST.get("username", ""), "address": client_address(request)}
        try:
            sign_in_try(**who)
        except TooManySignIns as refusal:
            return self._refused(refusal)
        response = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            sign_in_succeeded(**who)
        return response

    def _refused(self, refusal: TooManySignIns) -> HttpResponse:
        form = self.get_form_class()(self.request)
        context = self.get_context_data(form=form, refusal=refusal.detail)
        headers = {"Retry-After": str(refusal.retry_after_seconds)}
        return self.render_to_response(context, status=refusal.status, headers=headers)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, hide_next=True)


class SignOut(LogoutView):
    http_method_names = ["post", "options"]


def operator_sign_in(request: HttpRequest) -> HttpResponse:
    """The admin's own form knows no limit, so that operators sign in as everybody does."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied("These pages are the operator's; your account is not one.")
    wanted = request.GET.get("next", reverse("admin:index"))
    return redirect(f"{settings.LOGIN_URL}?{urlencode({'next': wanted})}")


def client_address(request: HttpRequest) -> str:
    """Who asks; behind a proxy the last address that it forwards, which it has added itself."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    if settings.PTXBOARD_BEHIND_PROXY and forwarded:
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
