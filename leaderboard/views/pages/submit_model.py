"""The form that submits a model; works without JavaScript and keeps all that was typed but the key.

Three buttons send it: `start` makes the runs, `test` asks the endpoint one tiny question, and
`estimate` counts. Asked by htmx, the last two answer with their result alone, so that the key stays
in the page that the browser holds.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import get_random_string
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from leaderboard.endpoints.probing import ProbeResult, probe
from leaderboard.models import ModelRun
from leaderboard.refusals import Refusal
from leaderboard.run_forms import ENDPOINT_FIELDS, PARAMETER_FIELDS, ModelRunForm, chosen
from leaderboard.services.model_runs.creation import model_runs_create
from leaderboard.services.model_runs.requests import body_digest, check_request, read_endpoint
from leaderboard.views.presenters.estimates import Estimate, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What came of one of the two buttons that start nothing."""

    probe: ProbeResult | None = None
    estimate: Estimate | None = None


@sensitive_post_parameters("key", "extra_body", "more")
@login_required
@never_cache
def submit_model(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, ModelRunForm(initial=chosen(request.GET)))
    form = ModelRunForm(request.POST)
    action = request.POST.get("action", "start")
    if action in ("test", "estimate"):
        return _checked(request, form, _test(form) if action == "test" else _estimate(form))
    if form.is_valid() and (runs := _start(request, form)):
        return _started(request, runs)
    return _page(request, form, status=422)


def _test(form: ModelRunForm) -> Check | None:
    """None where a field of the endpoint is wrong, which the form then says."""
    form.full_clean()
    form.forgive(all_but=(*ENDPOINT_FIELDS, *PARAMETER_FIELDS, "more"))
    if form.errors:
        return None
    try:
        wanted = read_endpoint(form.endpoint_body())
    except Refusal as refusal:
        form.add_refusals(refusal.errors)
        return None
    return Check(probe=probe(wanted.endpoint(), wanted.parameters))


def _estimate(form: ModelRunForm) -> Check | None:
    if not form.is_valid():
        return None
    try:
        return Check(estimate=estimate(check_request(form.body())))
    except Refusal as refusal:
        form.add_refusals(refusal.errors)
        return None


def _start(request: HttpRequest, form: ModelRunForm) -> tuple[ModelRun, ...]:
    """The runs, or none with the refusal written beside the fields that it is about."""
    body = form.body()
    try:
        made = model_runs_create(
            owner=request.user, body=body, idempotency_key=_sent_once(request, body)
        )
    except Refusal as refusal:
        form.add_refusals(refusal.errors)
        if not refusal.errors:
            form.add_error(None, f"{refusal.detail[:1].upper()}{refusal.detail[1:]}.")
        return ()
    return made.runs


def _sent_once(request: HttpRequest, body: dict[str, Any]) -> str | None:
    """A page that is sent twice unchanged starts its runs once."""
    page = request.POST.get("page", "")[:64]
    return hashlib.sha256(f"{page}{body_digest(body)}".encode()).hexdigest() if page else None


def _started(request: HttpRequest, runs: tuple[ModelRun, ...]) -> HttpResponse:
    if len(runs) == 1:
        return redirect(runs[0])
    messages.info(request, f"{len(runs)} model runs were started, one a problem.")
    return redirect("my-model-runs")


def _checked(request: HttpRequest, form: ModelRunForm, check: Check | None) -> HttpResponse:
    if request.headers.get("HX-Request"):
        context = {"form": form, "check": check}
        return render(request, "leaderboard/parts/run_check.html", context)
    return _page(request, form, check=check, status=200 if check else 422)


def _page(
    request: HttpRequest, form: ModelRunForm, *, check: Check | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "check": check,
        "page": request.POST.get("page") or get_random_string(24),
        "section": "submit",
    }
    return render(request, "leaderboard/submit_model.html", context, status=status)
