"""Signing in and out, by Django's own views."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, hide_next=True)


class SignOut(LogoutView):
    http_method_names = ["post", "options"]
