"""A metric at <= 1, <= 4 and <= 8 turns, in two lines as the paper sets it."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from evaluator.metrics.turns import Triplet
from evaluator.targets import TARGETS
from leaderboard.models import ModelStanding
from leaderboard.templatetags.marks import unknown

register = template.Library()

SHAPES = {"rate": (100, 1), "best": (1, 3)}


def triplet_text(values: Triplet, name: str) -> str:
    """`33.3 / 60.4 / 56.2` for a `rate`, in per cent; three decimals for a `best`."""
    factor, digits = SHAPES[name]
    return " / ".join(
        "\N{EN DASH}" if value is None else f"{value * factor:.{digits}f}"
        for value in (values.first, values.fourth, values.eighth)
    )


def is_known(values: Triplet) -> bool:
    return any(value is not None for value in (values.first, values.fourth, values.eighth))


@register.simple_tag
def triplet(standing: ModelStanding, name: str) -> SafeString:
    """Both lines of a standing; one on a target without instructions of its own."""
    upper, lower = columns(standing, f"target_{name}"), columns(standing, name)
    if not TARGETS[standing.target].families:
        return format_html("<i>{}</i>", triplet_text(lower, name))
    known = standing.knows_instructions or is_known(upper)
    first = (
        format_html("<b>{}</b>", triplet_text(upper, name))
        if known
        else unknown("what its turns ran is not known")
    )
    return format_html("{}<i>({})</i>", first, triplet_text(lower, name))


def columns(standing: ModelStanding, name: str) -> Triplet:
    values = (getattr(standing, f"{name}_{limit}") for limit in (1, 4, 8))
    return Triplet(**dict(zip(("first", "fourth", "eighth"), values, strict=True)))


@register.filter
def nano_dollars(amount: int) -> str:
    """Nanodollars as dollars with cents."""
    return f"${amount / 1e9:,.2f}"
