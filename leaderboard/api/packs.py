"""Knowledge packs by REST; all public."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from evaluator.records.problem import Family
from leaderboard.api import schema
from leaderboard.views.pages.packs import pack_find
from packs.pack import PACKS, Level, Pack, Part, find_pack

Choice = type[Level] | type[Family]
TEXT_PARAMETERS = [
    OpenApiParameter(name="level", enum=list(Level), description="contracts if not given"),
    OpenApiParameter(name="schedule", many=True, description="at level schedule, any number"),
    OpenApiParameter(name="guidance", enum=list(Family), description="advice for this family"),
]


class PackList(APIView):
    @extend_schema(responses=schema.AnyObject(many=True))
    def get(self, request: Request) -> Response:
        """Name, version, digest and token counts of every knowledge pack."""
        return Response([pack_json(find_pack(name), request) for name in PACKS])


class PackOne(APIView):
    @extend_schema(parameters=TEXT_PARAMETERS, responses=schema.AnyObject)
    def get(self, request: Request, name: str) -> Response:
        """One pack with its parts and sources, and `text`: what enters a prompt at this level."""
        pack = pack_find(name)
        level = _choice(request, "level", Level, Level.CONTRACTS)
        schedules = request.query_params.getlist("schedule")
        guidance = _choice(request, "guidance", Family, None)
        try:
            text = pack.text(level, schedules=schedules, guidance_for=guidance)
        except (KeyError, ValueError) as error:
            raise ValidationError({"schedule": [str(error.args[0])]}) from None
        return Response(
            {
                **pack_json(pack, request),
                "parts": [_part_json(part) for part in pack.files],
                "sources": [
                    {"id": source.id, "title": source.title, "url": source.url}
                    for source in pack.sources
                ],
                "level": level.value,
                "text": text,
            }
        )


def pack_json(pack: Pack, request: Request) -> dict[str, object]:
    return {
        **pack.facts(),
        "schedules": [
            {
                "slug": schedule.slug,
                "title": schedule.title,
                "families": [family.value for family in schedule.families],
                "tokens": schedule.token_count,
            }
            for schedule in pack.schedules
        ],
        "url": reverse("api:pack", args=[pack.name], request=request),
        "page": request.build_absolute_uri(f"/packs/{pack.name}/"),
    }


def _part_json(part: Part) -> dict[str, object]:
    return {
        "level": part.level.value,
        "title": part.title,
        "file": part.file,
        "tokens": part.token_count,
    }


def _choice(request: Request, name: str, choices: Choice, default: str | None) -> Any:
    """A member of `choices` by a query parameter; the member of `default` where it is missing."""
    text = request.query_params.get(name, default)
    if text is None:
        return None
    try:
        return choices(text)
    except ValueError:
        raise ValidationError({name: [f"{text!r} is not one of: {', '.join(choices)}"]}) from None
