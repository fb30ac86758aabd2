"""From what a person typed or posted to a checked request, or to everything that is wrong with it.

The key is in no error: what was seen in it, in unknown fields or in the body whole is not quoted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from django.conf import settings
from pydantic import Field, SecretStr, ValidationError

from evaluator.agent.context import ContextPolicy
from evaluator.agent.variants import Variant, variants_for
from evaluator.records.base import Record, digest_of
from evaluator.records.validation import FieldProblem, field_problems
from evaluator.targets import TARGETS, Target
from leaderboard.endpoints.addresses import Allowed, check_text
from leaderboard.endpoints.endpoint import BadEndpoint, Endpoint
from leaderboard.endpoints.errors import EndpointError
from leaderboard.endpoints.parameters import Api, Parameters
from leaderboard.models import Problem
from leaderboard.refusals import FieldError, InvalidRun
from leaderboard.services.drafts import (
    MAX_NAME_CHARACTERS,
    known_problem,
    line_errors,
    place_errors,
    problem_errors,
    text_errors,
)
from packs.pack import Level, Pack, pack_for

MOST_PROBLEMS = 20
UNQUOTED = ("key", "base_url", "extra_headers", "extra_body")

RequestT = TypeVar("RequestT", bound=Record)
Positive = Annotated[int, Field(gt=0, le=1_000_000_000)]
Money = Annotated[float, Field(ge=0, le=1_000_000)]


class Budget(Record):
    """Checked before each call; None is no limit. A money limit needs prices."""

    turns: Positive | None = None
    tokens: Positive | None = None
    cost_usd: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    seconds: Positive | None = None


class Prices(Record):
    """US dollars per million tokens."""

    prompt_usd: Money
    completion_usd: Money


class EndpointRequest(Record):
    """Where a model answers, as a body names it."""

    api: Api
    base_url: str = Field(max_length=500)
    model: str = Field(max_length=200)
    key: SecretStr = SecretStr("")
    parameters: Parameters = Parameters()

    def endpoint(self) -> Endpoint:
        """Raises BadEndpoint."""
        return Endpoint(api=self.api, base_url=self.base_url, model=self.model, key=self.key)


class RunRequest(EndpointRequest):
    """The body of POST /api/v1/model-runs/; `variants` empty means all that fit the problem.

    level     None: the pack's full text; a target without a pack takes none
    """

    name: str = ""
    problems: tuple[str, ...] = Field(min_length=1, max_length=MOST_PROBLEMS)
    target: str
    language: str | None = None
    binding: str | None = None
    level: Level | None = None
    guidance: bool = False
    variants: tuple[str, ...] = ()
    trajectories: Annotated[int, Field(ge=1, le=16)] = 4
    turns: Annotated[int, Field(ge=1, le=32)] = 8
    target_speedup: Annotated[float, Field(gt=0, le=1000)] = 1.2
    policy: ContextPolicy = ContextPolicy.FULL
    max_parallel: Annotated[int, Field(ge=1, le=64)] = 4
    budget: Budget = Budget()
    prices: Prices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPlan:
    """One run of the request: a problem with the variants that it will be asked in."""

    problem: Problem
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    request: RunRequest
    target: Target
    language: str
    binding: str
    pack: Pack | None
    level: Level | None
    plans: tuple[ProblemPlan, ...]

    @property
    def call_count(self) -> int:
        """Calls of the model at most: every variant, trajectory and turn, repeats left out."""
        each = self.request.trajectories * self.request.turns
        return sum(len(plan.variants) * each for plan in self.plans)


def body_digest(body: Mapping[str, Any]) -> str:
    """Digest of a request without its key: of a key nothing is kept."""
    return digest_of({name: value for name, value in body.items() if name != "key"})


def read_endpoint(body: Mapping[str, Any]) -> EndpointRequest:
    """Raises InvalidRun with all that is wrong."""
    wanted = {name: body[name] for name in EndpointRequest.model_fields if name in body}
    request = _read(EndpointRequest, wanted)
    if errors := list(_endpoint_errors(request)):
        raise InvalidRun(errors)
    return request


def check_request(body: Mapping[str, Any]) -> CheckedRequest:
    """Raises InvalidRun with all that is wrong, in the body's order."""
    request = _read(RunRequest, body)
    problems = [known_problem(name) for name in request.problems]
    errors = [
        *_endpoint_errors(request),
        *text_errors("name", request.name, MAX_NAME_CHARACTERS),
        *line_errors("name", request.name),
        *_problem_errors(request, problems),
        *_budget_errors(request),
    ]
    known = [problem for problem in problems if problem is not None]
    target = TARGETS.get(request.target)
    if target is None or len(known) < len(problems):
        raise InvalidRun(errors)
    pack, level = _pack(request, target, errors)
    plans = [_plan(problem, request, target, level, errors) for problem in known]
    if errors:
        raise InvalidRun(errors)
    language = request.language or target.languages[0]
    return CheckedRequest(
        request=request,
        target=target,
        language=language,
        binding=request.binding or target.bindings_of(language)[0],
        pack=pack,
        level=level,
        plans=tuple(plans),
    )


def _read(model: type[RequestT], body: Mapping[str, Any]) -> RequestT:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        found = field_errors(error, body, model)
    raise InvalidRun(found)


def field_errors(
    error: ValidationError, body: Mapping[str, Any], model: type[Record]
) -> list[FieldError]:
    """What was seen is quoted only where it cannot hold the key."""
    return [
        FieldError(
            pointer=one.pointer, message=one.rule, seen=one.seen if _quotes(one, model) else ""
        )
        for one in field_problems(error, dict(body))
    ]


def _quotes(problem: FieldProblem, model: type[Record]) -> bool:
    name = problem.pointer.partition(".")[0].partition("[")[0]
    return name in model.model_fields and not any(one in problem.pointer for one in UNQUOTED)


def _endpoint_errors(request: EndpointRequest) -> Iterator[FieldError]:
    try:
        check_text(request.base_url, Allowed.read(settings.PTXBOARD_ENDPOINT_HOSTS))
    except EndpointError as refused:
        yield FieldError(pointer="base_url", message=refused.message)
    try:
        request.endpoint()
    except BadEndpoint as refused:
        yield FieldError(pointer=refused.field, message=str(refused))
    for message in request.parameters.misfits(request.api):
        yield FieldError(pointer="parameters", message=message)


def _problem_errors(request: RunRequest, problems: list[Problem | None]) -> Iterator[FieldError]:
    if len(set(request.problems)) < len(request.problems):
        yield FieldError(pointer="problems", message="a problem is named twice; name each once")
    for name, problem in zip(request.problems, problems, strict=True):
        yield from (replace(one, pointer="problems") for one in problem_errors(name, problem))
    wanted = {"language": request.language, "binding": request.binding}
    found = [error for one in problems for error in place_errors(request.target, one, **wanted)]
    yield from {(error.pointer, error.message): error for error in found}.values()


def _budget_errors(request: RunRequest) -> Iterator[FieldError]:
    if request.budget.cost_usd is not None and request.prices is None:
        message = "a limit in US dollars needs 'prices': prompt_usd and completion_usd a million"
        yield FieldError(pointer="budget.cost_usd", message=message)


def _pack(
    request: RunRequest, target: Target, errors: list[FieldError]
) -> tuple[Pack | None, Level | None]:
    try:
        pack = pack_for(target.arch)
    except KeyError:
        pack = None
    if pack is not None:
        return pack, request.level or Level.SCHEDULE
    asked = {"level": request.level, "guidance": request.guidance}
    for pointer in (name for name, value in asked.items() if value):
        message = f"there is no knowledge pack for {target.slug}; leave {pointer} out"
        errors.append(FieldError(pointer=pointer, message=message))
    return None, None


def _plan(
    problem: Problem,
    request: RunRequest,
    target: Target,
    level: Level | None,
    errors: list[FieldError],
) -> ProblemPlan:
    offered = variants_for(problem.family, target.arch, level or Level.SCHEDULE)
    known = {variant.slug: variant for variant in offered}
    wanted = dict.fromkeys(request.variants or known)
    for slug in (slug for slug in wanted if slug not in known):
        message = f"{slug[:60]!r} is no variant of {problem.name} on {target.slug} at this level"
        error = FieldError(pointer="variants", message=message, seen=slug[:60], allowed=list(known))
        errors.append(error)
    return ProblemPlan(
        problem=problem, variants=tuple(known[slug] for slug in wanted if slug in known)
    )
