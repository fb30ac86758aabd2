"""One's own page: tokens for the API, shown once and revoked at will."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from leaderboard.forms import TokenForm
from leaderboard.models import ApiToken
from leaderboard.services.tokens import token_create, token_revoke

MOST_TOKENS = 50


@login_required
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    form, secret = TokenForm(request.POST or None), ""
    tokens = ApiToken.objects.filter(user=request.user, revoked_at=None)
    if form.is_bound and tokens.count() >= MOST_TOKENS:
        form.add_error(None, f"You have {MOST_TOKENS} tokens, the most there can be; revoke one.")
    if form.is_bound and form.is_valid():
        _, secret = token_create(user=request.user, label=form.cleaned_data["label"])
        form = TokenForm()
    context = {"form": form, "secret": secret, "tokens": tokens}
    return render(request, "leaderboard/account.html", context)


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    token_revoke(token=token, actor=request.user.get_username())
    messages.info(request, f"The token {token.prefix}… was revoked; it opens nothing any more.")
    return redirect("account")
