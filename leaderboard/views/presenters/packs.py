"""Knowledge packs as pages: levels, parts with their tokens, and texts set for reading.

The text that a model gets is never changed for it: what is shown here is rendered from the same
parts, and the download is the very text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

from evaluator.records.problem import Family
from leaderboard.views.presenters.sources import highlighted
from packs.pack import HEADINGS, Level, Pack, Part, SourceLink

CITATION = re.compile(r"\[([a-z][a-z0-9]*(?::[\w.-]+)?)\]")
FAMILY_WORDS = {
    Family.GEMM: "GEMM",
    Family.MHA_FORWARD: "attention forward",
    Family.MHA_BACKWARD: "attention backward",
    Family.OTHER: "other problems",
}
LEVEL_WORDS = {
    Level.PARAMETERS: "Parameters",
    Level.FUNCTIONS: "+ functions",
    Level.CONTRACTS: "+ contracts",
    Level.SCHEDULE: "+ schedules",
}


class Reading(TypedDict):
    """What the renderer knows of the text that it is at."""

    title: str
    sources: frozenset[str]
    region_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChoice:
    """A level with the tokens of the text up to it; schedules are counted apart."""

    level: Level
    word: str
    token_count: int
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """`is_code` parts are highlighted C++, others rendered Markdown; `note` says what it is for."""

    anchor: str
    title: str
    file: str
    heading: str
    note: str
    token_count: int
    is_shown: bool
    is_code: bool
    html: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class PackView:
    pack: Pack
    level: Level
    levels: tuple[LevelChoice, ...]
    parts: tuple[PartView, ...]
    shown_token_count: int

    @property
    def shown(self) -> tuple[PartView, ...]:
        return tuple(part for part in self.parts if part.is_shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRow:
    pack: Pack
    levels: tuple[LevelChoice, ...]


def pack_row(pack: Pack) -> PackRow:
    return PackRow(pack=pack, levels=_levels(pack, None))


def pack_view(pack: Pack, level: Level) -> PackView:
    """All parts for the table of contents; those of the level and below are rendered."""
    parts = tuple(_part_view(part, pack, level) for part in pack.files)
    return PackView(
        pack=pack,
        level=level,
        levels=_levels(pack, level),
        parts=parts,
        shown_token_count=sum(part.token_count for part in parts if part.is_shown),
    )


def _levels(pack: Pack, chosen: Level | None) -> tuple[LevelChoice, ...]:
    return tuple(
        LevelChoice(
            level=level,
            word=LEVEL_WORDS[level],
            token_count=pack.token_count(level),
            is_chosen=level is chosen,
        )
        for level in Level
    )


def _part_view(part: Part, pack: Pack, level: Level) -> PartView:
    is_code = part.path.suffix == ".cuh"
    is_shown = level.holds(part.level)
    families = getattr(part, "families", ())
    return PartView(
        anchor=slugify(part.file.removesuffix(part.path.suffix).replace("/", "-")),
        title=part.title,
        file=part.file,
        heading="Guidance" if part in pack.guidance else HEADINGS[part.level],
        note=", ".join(FAMILY_WORDS[family] for family in families),
        token_count=part.token_count,
        is_shown=is_shown,
        is_code=is_code,
        html=_html(part, pack.sources) if is_shown else mark_safe(""),
    )


def source_anchor(source_id: str) -> str:
    return f"source-{slugify(source_id.replace(':', '-'))}"


@lru_cache(maxsize=256)
def _html(part: Part, sources: tuple[SourceLink, ...]) -> SafeString:
    if part.path.suffix == ".cuh":
        return highlighted(part.text, language="cpp")
    known = frozenset(source.id for source in sources)
    env = Reading(title=part.title, sources=known, region_count=0)
    return mark_safe(_reader().render(part.text, env))  # noqa: S308 - raw HTML is off


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    """CommonMark with tables; raw HTML in a text is shown as text, never as markup."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("fence", _fence)
    reader.add_render_rule("text", _text)
    reader.add_render_rule("table_open", _table_open)
    reader.add_render_rule("table_close", _table_close)
    reader.add_render_rule("th_open", _th_open)
    return reader


def _fence(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: object, env: Reading
) -> str:
    return format_html(
        '<div class="code highlight" tabindex="0" role="region" aria-label="{}">'
        "<pre>{}</pre></div>\n",
        _label(env, "Code"),
        highlighted(tokens[index].content, language="cpp"),
    )


def _text(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: object, env: Reading
) -> str:
    """Escaped text whose [source] citations are links to the list of sources."""
    pieces = CITATION.split(tokens[index].content)
    plain, cited = pieces[::2], [*pieces[1::2], None]
    return format_html_join(
        "",
        "{}{}",
        (
            (before, _citation(source_id, env["sources"]))
            for before, source_id in zip(plain, cited, strict=True)
        ),
    )


def _citation(source_id: str | None, known: frozenset[str]) -> SafeString | str:
    if source_id is None:
        return ""
    if source_id not in known:
        return f"[{source_id}]"
    return format_html('<a class="cite" href="#{}">[{}]</a>', source_anchor(source_id), source_id)


def _table_open(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: object, env: Reading
) -> str:
    return format_html(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table>\n',
        _label(env, "Table"),
    )


def _label(env: Reading, what: str) -> str:
    """Names a region that scrolls, each by another name: `Table 2 in Tensor maps`."""
    env["region_count"] += 1
    return f"{what} {env['region_count']} in {env['title']}"


def _table_close(*_: object) -> str:
    return "</table></div>\n"


def _th_open(*_: object) -> str:
    return '<th scope="col">'
