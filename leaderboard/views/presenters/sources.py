"""Sources with line numbers, highlighted on the server."""

from dataclasses import dataclass

from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Keyword

from evaluator.records.candidate import Source
from leaderboard.views.presenters.text import visible

MAX_SHOWN_BYTES = 200_000
"""Above this a page would grow heavy: the first part is shown and the whole is a download."""

CUDA_WORDS = (
    "__global__",
    "__device__",
    "__host__",
    "__shared__",
    "__constant__",
    "__launch_bounds__",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    number: int
    path: str
    byte_count: int
    line_count: int
    is_entry: bool
    is_cut: bool
    html: SafeString


def source_view(source: Source, *, number: int, entry_file: str) -> SourceView:
    shown = source.content[:MAX_SHOWN_BYTES]
    language = "python" if source.path.endswith(".py") else "cpp"
    return SourceView(
        number=number,
        path=source.path,
        byte_count=source.byte_count,
        line_count=source.content.count("\n") + (not source.content.endswith("\n")),
        is_entry=source.path == entry_file,
        is_cut=len(shown) < len(source.content),
        html=highlighted(shown, language=language, anchor=f"s{number}-"),
    )


def highlighted(text: str, *, language: str, anchor: str = "") -> SafeString:
    """HTML lines; each has a number that links to itself where `anchor` is given.

    Pygments escapes the text. It never closes a line inside a span, so lines split safely.
    """
    lexer = PythonLexer(stripnl=False) if language == "python" else _cuda_lexer()
    html = highlight(visible(text), lexer, HtmlFormatter(nowrap=True))
    lines = html.removesuffix("\n").split("\n")
    if not anchor:
        return mark_safe("\n".join(lines))  # noqa: S308 - escaped by Pygments
    return format_html_join(
        "\n",
        '<span id="{0}L{1}"><a class="linenos" href="#{0}L{1}" tabindex="-1">{1}</a>{2}</span>',
        ((anchor, number, mark_safe(line)) for number, line in enumerate(lines, 1)),  # noqa: S308
    )


def _cuda_lexer() -> CppLexer:
    """C++ whose CUDA words stand out like its own keywords."""
    lexer = CppLexer(stripnl=False)
    lexer.add_filter("highlight", names=list(CUDA_WORDS), tokentype=Keyword)
    return lexer
