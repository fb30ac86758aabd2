"""Small pieces of markup: icons, badges, the dash for an unknown value, digests."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evaluator.metrics.states import TurnState
from evaluator.records.evidence import OpcodeCount, VerifiedCall
from evaluator.records.verdicts import InstructionStatus, Stage, Verdict
from leaderboard.charts.fast_p import series_css
from leaderboard.charts.flows import CSS as STATE_CSS
from leaderboard.models import StageRecord
from leaderboard.views.presenters import text
from leaderboard.views.presenters.words import INSTRUCTIONS, STAGES, TRUST, Badge, verdict_badge

MOST_OPCODES = 60

register = template.Library()
register.filter("visible", text.visible)
register.filter("log_text", text.log_text)

# Drawn for this site on a 16 x 16 grid.
_PATHS = {
    "check": "M3 8.5l3.5 3.5L13 4.5",
    "cross": "M4 4l8 8M12 4l-8 8",
    "wave": "M1.5 8c1.6-4 3.2-4 4.9 0s3.3 4 4.9 0c.9-2.2 2-3.3 3.2-3",
    "clock": "M8 1.8a6.2 6.2 0 110 12.4A6.2 6.2 0 018 1.8zM8 4.5V8l2.5 1.5",
    "spin": "M8 1.8a6.2 6.2 0 016.2 6.2M1.8 8a6.2 6.2 0 0012 2.2",
    "dash": "M3 8h10",
    "tool": (
        "M10.5 2.2a3.6 3.6 0 00-4.3 4.9L2 11.3 4.7 14l4.2-4.2"
        "a3.6 3.6 0 004.9-4.3L11.6 7.7 8.8 7.2l-.5-2.8z"
    ),
    "ban": "M8 1.8a6.2 6.2 0 110 12.4A6.2 6.2 0 018 1.8zM3.7 3.7l8.6 8.6",
    "question": "M5.2 5.6a2.8 2.8 0 115 1.8C9.2 8.4 8 8.7 8 10.3M8 13.4v.1",
    "pause": "M5.5 3v10M10.5 3v10",
    "flag": "M4 14.5V2M4 2.5h8.5l-2.2 3 2.2 3H4",
    "target": "M8 2.2L13.8 8 8 13.8 2.2 8z",
    "theme": "M8 1.8a6.2 6.2 0 110 12.4zM8 1.8a6.2 6.2 0 100 12.4",
    "down": "M8 2v8.5M4.5 7.5L8 11l3.5-3.5M2.5 14h11",
    "double": "M1.5 8.5l3 3L11 5M7.5 11l.8.5L14.5 5",
    "upload": "M8 10.5V2M4.5 5.5L8 2l3.5 3.5M2.5 14h11",
    "page": "M4 1.8h5.5L12.5 5v9.2H4zM6.5 7.5h4M6.5 10.5h4",
    "dot": "M8 6.5a1.5 1.5 0 110 3 1.5 1.5 0 010-3z",
}


@register.simple_tag
def icon(name: str, css: str = "") -> SafeString:
    """A decorative icon: the word beside it carries the meaning."""
    return format_html(
        '<svg class="icon {}" viewBox="0 0 16 16" aria-hidden="true" focusable="false">'
        '<path d="{}"/></svg>',
        css,
        mark_safe(_PATHS[name]),  # noqa: S308 - a constant of this module
    )


@register.simple_tag
def badge(value: Badge, size: str = "") -> SafeString:
    """Icon, word and colour of a verdict or state; the title says what it means."""
    return format_html(
        '<span class="badge {} tone-{}" title="{}">{}{}</span>',
        size,
        value.tone,
        value.title,
        icon(value.icon, "spinner" if value.icon == "spin" else ""),
        value.word,
    )


@register.simple_tag
def unknown(reason: str) -> SafeString:
    """The dash for a value that is not known, with its reason for mouse and screen reader."""
    return format_html(
        '<span class="unknown" title="{}">—'
        '<span class="visually-hidden"> not known: {}</span></span>',
        reason,
        reason,
    )


@register.simple_tag
def digest(value: str | None, reason: str = "not recorded") -> SafeString:
    """Twelve digits of a SHA-256 with the whole in its title."""
    if not value:
        return unknown(reason)
    return format_html('<span class="digest" title="{}">{}</span>', value, value[:12])


@register.simple_tag
def meter(fraction: float | None) -> SafeString:
    """A share as a short bar, drawn with attributes only; the number stands beside it."""
    if fraction is None:
        return mark_safe("")
    width = 56 * min(1.0, max(0.0, fraction))
    return format_html(
        '<svg class="meter" viewBox="0 0 56 8" aria-hidden="true" focusable="false">'
        '<rect class="track" x="0.5" y="0.5" width="55" height="7"/>'
        '<rect class="fill" x="0" y="0" width="{}" height="8"/></svg>',
        f"{width:.1f}",
    )


@register.simple_tag
def verdict(value: Verdict) -> SafeString:
    return badge(verdict_badge(value))


@register.simple_tag
def instruction_badge(status: InstructionStatus) -> SafeString:
    return badge(INSTRUCTIONS[status])


@register.simple_tag
def trust_badge(trust: str) -> SafeString:
    """Where a number comes from: measured here, uploaded, or printed elsewhere."""
    return badge(TRUST[trust])


@register.simple_tag
def stage_name(stage: str) -> str:
    return STAGES[Stage(stage)][0]


register.filter("series_css", series_css)


@register.filter
def state_css(state: TurnState) -> str:
    return STATE_CSS[state]


@register.filter
def ticked(words: str) -> SafeString:
    """Text of ours with `code` between backticks."""
    parts = enumerate(words.split("`"))
    return mark_safe(  # noqa: S308 - each part is escaped
        "".join(format_html("<code>{}</code>" if n % 2 else "{}", part) for n, part in parts)
    )


@register.filter
def breakable(name: str) -> SafeString:
    """A name that may be broken after its underscores, for narrow headings."""
    return format_html_join(mark_safe("_<wbr>"), "{}", ((part,) for part in name.split("_")))


@register.filter
def stage_template(record: StageRecord) -> str:
    return f"leaderboard/stages/{record.stage}.html"


@register.filter
def most_frequent(counts: tuple[OpcodeCount, ...]) -> list[OpcodeCount]:
    return sorted(counts, key=lambda one: (-one.count, one.opcode))[:MOST_OPCODES]


@register.filter
def with_faults(calls: tuple[VerifiedCall, ...]) -> int:
    """How many verified calls had a wrong output, a changed input or a broken guard."""
    return sum(bool(one.bad_count or one.mutated_inputs or one.broken_guards) for one in calls)
