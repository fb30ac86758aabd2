"""The machine code of a submission, one function at a time."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.models import Artifact, Submission
from leaderboard.services.ladder import decisive_records
from leaderboard.views.pages.filters import page_exists, page_number
from leaderboard.views.presenters.listings import PAGE_ROWS, Listing, listing, sass_record
from leaderboard.views.presenters.submissions import submission_view


def machine_code(request: HttpRequest, submission_id: str) -> HttpResponse:
    """`?function=` by its number, `?page=` of a long one."""
    found = Submission.objects.select_related("entrant", "problem").filter(pk=submission_id).first()
    if found is None:
        raise Http404(f"There is no submission {submission_id}.")
    artifact = _artifact(found)
    text = artifact.path.read_text(encoding="utf-8", errors="replace")
    code = listing(text, found.target_record, submission_view(found).results)
    if not code.functions:
        raise Http404("The listing of this submission holds no instruction.")
    function = code.functions[_function_number(request, code) - 1]
    number = page_number(request)
    page_exists(number, function.page_count)
    start = (number - 1) * PAGE_ROWS
    context = {
        "submission": found,
        "artifact": artifact,
        "listing": code,
        "function": function,
        "rows": function.rows[start : start + PAGE_ROWS],
        "page_number": number,
        "page_count": function.page_count,
        "query": f"function={function.number}&",
        "section": "submissions",
    }
    return render(request, "leaderboard/machine_code.html", context)


def _artifact(found: Submission) -> Artifact:
    record = sass_record(decisive_records(found))
    uses = record.stage_artifacts.select_related("artifact") if record else ()
    artifact = next((use.artifact for use in uses if use.role == "sass"), None)
    if artifact is None or not artifact.path.exists():
        raise Http404("No machine code of this submission is kept here.")
    return artifact


def _function_number(request: HttpRequest, code: Listing) -> int:
    value = request.GET.get("function", "")
    if not value:
        return code.first_of_interest
    last = len(code.functions)
    if not (value.isascii() and value.isdigit() and len(value) < 7 and 1 <= int(value) <= last):
        raise Http404(f"There is no function {value[:60]!r}; they are numbered 1 to {last}.")
    return int(value)
