"""Shapes for the OpenAPI document only; nothing is validated by these."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

IDEMPOTENCY_PARAMETER = OpenApiParameter(
    name="Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="1 to 200 visible ASCII characters; repeats with the same body change nothing.",
)
LIST_PARAMETERS = [
    OpenApiParameter(name=name, type=OpenApiTypes.STR)
    for name in ("problem", "target", "entrant", "state", "verdict", "mine", "cursor", "page_size")
]


class AnyObject(serializers.Serializer):
    """An object whose members the text describes."""


class SourceBody(serializers.Serializer):
    path = serializers.CharField()
    content = serializers.CharField()


class SubmissionBody(serializers.Serializer):
    problem = serializers.CharField()
    target = serializers.CharField()
    language = serializers.CharField(required=False)
    binding = serializers.CharField(required=False, default="c")
    source = serializers.CharField(required=False)
    sources = SourceBody(many=True, required=False)
    entry_point = serializers.CharField(required=False, help_text="file::symbol")
    name = serializers.CharField(required=False)
    description = serializers.CharField(required=False)
    solution = serializers.DictField(
        required=False, help_text="a FlashInfer-Trace solution instead; then only target beside it"
    )


class EntrantShape(serializers.Serializer):
    slug = serializers.CharField()
    display_name = serializers.CharField()
    kind = serializers.CharField()


class SubmissionShape(serializers.Serializer):
    id = serializers.UUIDField()
    url = serializers.URLField()
    html_url = serializers.URLField()
    name = serializers.CharField()
    state = serializers.CharField()
    verdict = serializers.CharField(allow_null=True)
    withdrawn = serializers.BooleanField(help_text="its evaluation was taken back")
    message = serializers.CharField()
    problem = serializers.CharField()
    target = serializers.CharField()
    language = serializers.CharField()
    binding = serializers.CharField()
    entrant = EntrantShape()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class SubmissionPage(serializers.Serializer):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = SubmissionShape(many=True)


class StageShape(serializers.Serializer):
    stage = serializers.CharField()
    lane = serializers.CharField()
    verdict = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(
        choices=["passed", "failed", "running", "waiting", "not_reached", "skipped"]
    )
    message = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    evidence = serializers.DictField(allow_null=True)
    artifacts = serializers.ListField(child=serializers.DictField())
    digest = serializers.CharField(allow_null=True)


class SubmissionDetail(SubmissionShape):
    stages = StageShape(many=True)
    queue = serializers.DictField(allow_null=True)
    score = serializers.DictField(allow_null=True)
    target_instructions = serializers.DictField(allow_null=True)
    environment = serializers.DictField(allow_null=True)
    candidate = serializers.DictField()
    bundle_url = serializers.URLField()


class Board(serializers.Serializer):
    target = serializers.CharField()
    problem = serializers.CharField()
    scoring_version = serializers.CharField()
    baseline = serializers.DictField()
    rows = serializers.ListField(child=serializers.DictField())


class SubmitTokenScheme(OpenApiAuthenticationExtension):
    target_class = "leaderboard.api.authentication.SubmitTokenAuthentication"
    name = "submitToken"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token <secret>`, made on the account page",
        }


class WorkerTokenScheme(SubmitTokenScheme):
    target_class = "leaderboard.api.authentication.WorkerTokenAuthentication"
    name = "workerToken"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            **super().get_security_definition(auto_schema),
            "description": "`Worker <secret>`, made by the site's operator",
        }


def only_canonical(endpoints: list[tuple[Any, ...]], **kwargs: Any) -> list[tuple[Any, ...]]:
    """Leaves out the addresses that only spare a redirect, those without their slash."""
    paths = {endpoint[0] for endpoint in endpoints}
    return [endpoint for endpoint in endpoints if f"{endpoint[0]}/" not in paths]
