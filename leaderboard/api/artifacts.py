"""Artifacts as raw bytes: never rendered by a browser, whatever a candidate put into them."""

from django.http import FileResponse, Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from leaderboard.models import Artifact


class ArtifactOne(APIView):
    @extend_schema(responses={(200, "application/octet-stream"): bytes})
    def get(self, request: Request, sha256: str) -> FileResponse:
        """The bytes whose SHA-256 this is, as an attachment."""
        return artifact_response(sha256)


def artifact_response(sha256: str) -> FileResponse:
    """Raises Http404 where it is not known or its file is gone."""
    artifact = Artifact.objects.filter(pk=sha256).first()
    if artifact is None or not artifact.path.exists():
        raise Http404(f"There is no artifact {sha256}.")
    kind = "text/plain; charset=utf-8" if artifact.is_text else "application/octet-stream"
    suffix = "txt" if artifact.is_text else "bin"
    response = FileResponse(
        artifact.path.open("rb"),
        as_attachment=True,
        filename=f"{sha256[:16]}.{suffix}",
        content_type=kind,
    )
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "public, max-age=31536000, immutable"
    return response
