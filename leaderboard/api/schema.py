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


EXPORT_PARAMETER = OpenApiParameter(
    name="format", enum=["ptxboard", "mini-swe-agent", "flashinfer-trace"]
)


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


class EndpointBody(serializers.Serializer):
    api = serializers.ChoiceField(choices=["openai-chat", "openai-responses", "anthropic-messages"])
    base_url = serializers.URLField()
    model = serializers.CharField()
    key = serializers.CharField(required=False, write_only=True, help_text="never shown again")
    parameters = serializers.DictField(required=False)


class BudgetBody(serializers.Serializer):
    turns = serializers.IntegerField(required=False)
    tokens = serializers.IntegerField(required=False)
    cost_usd = serializers.FloatField(required=False, help_text="needs prices")
    seconds = serializers.IntegerField(required=False)


class ResumeBody(serializers.Serializer):
    key = serializers.CharField(required=False, write_only=True)
    budget = BudgetBody(required=False)


class ModelRunBody(EndpointBody):
    name = serializers.CharField(required=False)
    problems = serializers.ListField(child=serializers.CharField(), help_text="a run for each")
    target = serializers.CharField()
    language = serializers.CharField(required=False)
    binding = serializers.CharField(required=False)
    variants = serializers.ListField(child=serializers.CharField(), required=False)
    level = serializers.CharField(required=False)
    guidance = serializers.BooleanField(required=False)
    trajectories = serializers.IntegerField(required=False, default=4, help_text="per variant")
    turns = serializers.IntegerField(required=False, default=8)
    target_speedup = serializers.FloatField(required=False, default=1.2)
    policy = serializers.ChoiceField(required=False, choices=["full", "latest-pair", "single-user"])
    max_parallel = serializers.IntegerField(required=False, default=4)
    budget = BudgetBody(required=False)
    prices = serializers.DictField(
        required=False, help_text="prompt_usd and completion_usd per million tokens"
    )


class ModelRunShape(serializers.Serializer):
    id = serializers.UUIDField()
    batch = serializers.UUIDField()
    url = serializers.URLField()
    html_url = serializers.URLField()
    name = serializers.CharField()
    model = serializers.CharField()
    entrant = EntrantShape()
    problem = serializers.CharField()
    target = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ModelRunPage(serializers.Serializer):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ModelRunShape(many=True)


class ProbeShape(serializers.Serializer):
    ok = serializers.BooleanField()
    message = serializers.CharField()
    kind = serializers.CharField(allow_null=True)
    model = serializers.CharField(allow_null=True)
    seconds = serializers.FloatField()


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
