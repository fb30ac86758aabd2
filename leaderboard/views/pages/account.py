"""One's own page: tokens for the API, shown once and revoked at will."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from leaderboard.forms import TokenForm
from leaderboard.models import ApiToken
from leaderboard.services.tokens import token_create


@login_required
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    form, secret = TokenForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        _, secret = token_create(user=request.user, label=form.cleaned_data["label"])
        form = TokenForm()
    tokens = ApiToken.objects.filter(user=request.user, revoked_at=None)
    context = {"form": form, "secret": secret, "tokens": tokens}
    return render(request, "leaderboard/account.html", context)


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    messages.info(request, f"The token {token.prefix}… was revoked; it opens nothing any more.")
    return redirect("account")
