"""Command lines that a reader can copy."""

from shlex import quote

from django import template
from django.urls import reverse

from leaderboard.models import Submission

register = template.Library()


@register.simple_tag(takes_context=True)
def site_address(context: template.RequestContext) -> str:
    """`https://host`, as the reader reached this site."""
    return context["request"].build_absolute_uri("/").rstrip("/")


@register.simple_tag
def reproduce_command(submission: Submission, site: str) -> str:
    """Fetches the sources and measures them; names of files are ours, never the upload's."""
    suffix = {"cuda": "cu", "cpp": "cpp", "triton": "py"}[submission.language]
    candidate = submission.candidate
    names = {
        number: f"kernel.{suffix}" if len(candidate.sources) == 1 else source.path
        for number, source in enumerate(candidate.sources, 1)
    }
    fetched = " && ".join(
        f"curl -fsS --create-dirs {site}"
        f"{reverse('submission-source', args=[submission.pk, number])} -o {quote(f'./{name}')}"
        for number, name in names.items()
    )
    entry = next(
        names[number]
        for number, source in enumerate(candidate.sources, 1)
        if source.path == candidate.entry_file
    )
    files = " ".join(quote(f"./{name}") for name in names.values())
    more = f" --entry {quote(entry)}" if len(names) > 1 else ""
    binding = f" --binding {submission.binding}" if submission.binding != "c" else ""
    return (
        f"{fetched} && ptxboard evaluate {files} --problem {submission.problem.name} "
        f"--target {submission.target}{binding}{more}"
    )
