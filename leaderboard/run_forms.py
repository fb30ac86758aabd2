"""The form that submits a model. What a run may be is decided by the service that REST uses too."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms

from evaluator.agent.context import ContextPolicy
from evaluator.agent.variants import NO_SCHEDULE, SCHEDULED
from evaluator.records.base import InvalidJson, strict_loads
from evaluator.records.problem import Family
from evaluator.targets import TARGETS
from leaderboard.endpoints.endpoint import MAX_KEY_CHARS
from leaderboard.endpoints.parameters import Api
from leaderboard.forms import problem_choices
from leaderboard.refusals import FieldError
from packs.pack import Level

ENDPOINT_FIELDS = ("api", "base_url", "model", "key")
PARAMETER_FIELDS = ("temperature", "top_p", "max_tokens", "reasoning_effort", "extra_body")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
POLICIES = {
    ContextPolicy.FULL: "full: every turn so far",
    ContextPolicy.LATEST_PAIR: "latest-pair: only the newest answer and its feedback",
    ContextPolicy.SINGLE_USER: "single-user: everything in one message",
}
LEVELS = {
    Level.PARAMETERS: "parameters only",
    Level.FUNCTIONS: "and functions",
    Level.CONTRACTS: "and contracts",
    Level.SCHEDULE: "and a schedule (full)",
}
FAMILIES = {
    Family.GEMM: "GEMM",
    Family.MHA_FORWARD: "MHA forward",
    Family.MHA_BACKWARD: "MHA backward",
}
FIELD_OF = {
    "budget.turns": "limit_turns",
    "budget.tokens": "limit_tokens",
    "budget.cost_usd": "limit_cost_usd",
    "budget.seconds": "limit_seconds",
    "prices": "price_prompt_usd",
    "prices.prompt_usd": "price_prompt_usd",
    "prices.completion_usd": "price_completion_usd",
}


class JsonObjectField(forms.CharField):
    """A JSON object, cleaned to a dict; empty text is {}. Never quotes what was typed."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocapitalize": "off"})
        super().__init__(required=False, max_length=20_000, widget=widget, **kwargs)

    def clean(self, value: Any) -> dict[str, Any]:
        text = str(super().clean(value)).strip()
        if not text:
            return {}
        try:
            found = strict_loads(text)
        except InvalidJson as error:
            raise forms.ValidationError(f"{error}.") from error
        if not isinstance(found, dict):
            raise forms.ValidationError('Write a JSON object, such as {"top_k": 20}.')
        return found


class ModelRunForm(forms.Form):
    """`body()` is what POST /api/v1/model-runs/ would take."""

    api = forms.ChoiceField(
        choices=[
            (Api.CHAT.value, "OpenAI chat completions"),
            (Api.RESPONSES.value, "OpenAI responses"),
            (Api.MESSAGES.value, "Anthropic messages"),
        ],
        help_text="Which of the APIs the endpoint speaks.",
    )
    base_url = forms.CharField(
        max_length=500,
        help_text="Such as https://api.example.org/v1. Only its host is shown.",
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false"}),
    )
    model = forms.CharField(
        max_length=200,
        help_text="As the endpoint calls it; the board shows it.",
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    key = forms.CharField(
        required=False,
        strip=True,
        max_length=MAX_KEY_CHARS,
        help_text="Encrypted, shown to nobody, deleted when the run ends. Empty: none is sent.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    name = forms.CharField(
        max_length=100, required=False, help_text="Empty: the model and the problem."
    )

    temperature = forms.FloatField(required=False)
    top_p = forms.FloatField(required=False, label="top_p")
    max_tokens = forms.IntegerField(required=False, help_text="Of one answer.")
    reasoning_effort = forms.ChoiceField(
        required=False, choices=[("", "the endpoint's own"), *((one, one) for one in EFFORTS)]
    )
    extra_body = JsonObjectField(
        help_text="Fields of the request that only this endpoint knows. Public: no secrets here."
    )
    more = JsonObjectField(
        help_text="Such as top_k, min_p, seed, stop, thinking, presence_penalty, extra_headers."
    )

    problems = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "There is no problem “%(value)s”. Pick from the list."},
        help_text="One run is made for each.",
    )
    target = forms.ChoiceField(choices=[(one.slug, one.title) for one in TARGETS.values()])
    language = forms.ChoiceField(
        required=False,
        choices=[
            ("", "the target's own"),
            ("cuda", "CUDA C++ with PTX"),
            ("triton", "Triton"),
            ("cpp", "C++"),
        ],
    )
    level = forms.ChoiceField(
        required=False,
        choices=[("", "all of it"), *((one.value, LEVELS[one]) for one in Level)],
        help_text="How much of the target's knowledge pack the prompt holds.",
    )
    guidance = forms.BooleanField(required=False, help_text="Experts' advice for the problem.")
    variants = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: every one that fits the problem and the target.",
    )

    trajectories = forms.IntegerField(initial=4, help_text="For each variant.")
    turns = forms.IntegerField(initial=8, help_text="At most, in each trajectory.")
    target_speedup = forms.FloatField(initial=1.2, help_text="Reaching it ends a trajectory.")
    max_parallel = forms.IntegerField(
        initial=4, help_text="Trajectories at once, as far as your share of places allows."
    )
    policy = forms.ChoiceField(
        choices=[(one.value, POLICIES[one]) for one in ContextPolicy],
        help_text="What the model sees again of its earlier turns.",
    )

    limit_turns = forms.IntegerField(required=False, help_text="In the whole run.")
    limit_tokens = forms.IntegerField(required=False, help_text="In and out together.")
    limit_cost_usd = forms.FloatField(required=False, help_text="Needs the prices below.")
    limit_seconds = forms.IntegerField(required=False, help_text="Pauses do not count.")
    price_prompt_usd = forms.FloatField(required=False, help_text="US dollars a million tokens in.")
    price_completion_usd = forms.FloatField(
        required=False, help_text="US dollars a million tokens out."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["problems"].choices = problem_choices()
        self.fields["variants"].choices = variant_choices()

    def forgive(self, *, all_but: tuple[str, ...]) -> None:
        """A test of the connection is about the endpoint: what else is wrong can wait."""
        for name in [name for name in self.errors if name not in all_but]:
            del self.errors[name]

    def endpoint_body(self) -> dict[str, Any]:
        values = self.cleaned_data
        body = {name: values[name] for name in ENDPOINT_FIELDS if values.get(name)}
        return {**body, "parameters": self._parameters()}

    def body(self) -> dict[str, Any]:
        """Fields left empty are left out, so that the service's own defaults hold."""
        values = self.cleaned_data
        plain = ("name", "target", "language", "level", "policy")
        numbers = ("trajectories", "turns", "target_speedup", "max_parallel")
        return {
            **self.endpoint_body(),
            **{name: values[name] for name in (*plain, *numbers) if values[name] not in (None, "")},
            "problems": values["problems"],
            "variants": values["variants"],
            "guidance": values["guidance"],
            **self._nested("budget", "limit_"),
            **self._nested("prices", "price_"),
        }

    def _parameters(self) -> dict[str, Any]:
        values = self.cleaned_data
        told = {name: values.get(name) for name in PARAMETER_FIELDS}
        told = {name: value for name, value in told.items() if value not in (None, "", {})}
        return {**values.get("more", {}), **told}

    def _nested(self, name: str, prefix: str) -> dict[str, Any]:
        told = {
            field.removeprefix(prefix): value
            for field, value in self.cleaned_data.items()
            if field.startswith(prefix) and value is not None
        }
        return {name: told} if told else {}

    @property
    def problem_groups(self) -> list[tuple[str, list[Any]]]:
        return self._groups("problems")

    @property
    def variant_groups(self) -> list[tuple[str, list[Any]]]:
        return self._groups("variants")

    def _groups(self, name: str) -> list[tuple[str, list[Any]]]:
        """(title, checkboxes) in order; choices without a group have an empty title."""
        boxes = list(self[name].subwidgets)
        found: list[tuple[str, list[Any]]] = []
        for title, choices in self.fields[name].choices:
            grouped = isinstance(choices, list | tuple)
            count = len(choices) if grouped else 1
            if grouped or not found:
                found.append((title if grouped else "", []))
            found[-1][1].extend(boxes[:count])
            boxes = boxes[count:]
        return found

    def add_refusals(self, errors: tuple[FieldError, ...]) -> None:
        """Each beside the field that it is about; JSON fields hold many, so it is named there."""
        for error in errors:
            field = self._field_of(error.pointer)
            inside = error.pointer.removeprefix("parameters").lstrip(".")
            named = field == "more" and inside
            self.add_error(field, f"{inside}: {error.message}" if named else error.message)

    def _field_of(self, pointer: str) -> str | None:
        place = pointer.partition("[")[0]
        head, _, rest = place.partition(".")
        if head == "parameters":
            name = rest.partition(".")[0]
            return name if name in PARAMETER_FIELDS else "more"
        name = FIELD_OF.get(place, head)
        return name if name in self.fields else None

    def error_lines(self) -> Iterator[tuple[str, str]]:
        """(label, message) of everything that is wrong."""
        for name, messages in self.errors.items():
            label = self[name].label if name in self.fields else ""
            for message in messages:
                yield label, str(message)


def variant_choices() -> list[tuple[str, str]]:
    """Every variant of every pack once, with where it fits."""
    fits: dict[str, tuple[str, list[str]]] = {NO_SCHEDULE.slug: (NO_SCHEDULE.title, [])}
    for (architecture, family), variants in SCHEDULED.items():
        place = f"{architecture.value.title()} {FAMILIES[family]}"
        for variant in variants:
            fits.setdefault(variant.slug, (variant.title, []))[1].append(place)
    return [
        (slug, f"{title} ({', '.join(places)})" if places else title)
        for slug, (title, places) in fits.items()
    ]


def chosen(query: Mapping[str, str]) -> dict[str, Any]:
    """What links such as /model-runs/submit/?problem=...&target=... ask for."""
    initial: dict[str, Any] = {}
    if target := query.get("target"):
        initial["target"] = target[:100]
    if problem := query.get("problem"):
        initial["problems"] = [problem[:100]]
    return initial
