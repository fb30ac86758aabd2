"""Numbers to text. Fields hold nanoseconds, fractions, bytes and FLOP/s; only text holds units."""

from datetime import UTC, datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

Number = int | float | None

DASH = "—"
TIMES = " × "  # noqa: RUF001
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_RATE_UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
_BYTE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def significant(value: float, digits: int = 4) -> str:
    """Fixed-point text with that many significant digits: 0.08312, 1.234, 83.12, 12345."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if whole:
        return f"{value:.{max(0, digits - whole)}f}"
    text = f"{value:.{digits}g}"
    return text if "e" in text else f"{value:.{_zeros_after_point(value) + digits}f}"


def _zeros_after_point(value: float) -> int:
    count, scaled = 0, abs(value) * 10
    while scaled < 1:
        count, scaled = count + 1, scaled * 10
    return count


@register.filter
def duration(ns: Number) -> str:
    """Nanoseconds as the largest unit that keeps at least one whole digit: `631.8 µs`."""
    if ns is None:
        return DASH
    factor, unit = next((pair for pair in _TIME_UNITS if abs(ns) >= pair[0]), (1, "ns"))
    return f"{significant(ns / factor)} {unit}"


@register.filter
def elapsed(seconds: Number) -> str:
    """Of what people wait for, the two largest units: `41 s`, `3 h 20 min`, `2 d 1 h`."""
    if seconds is None:
        return DASH
    left, parts = int(seconds), []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
        left %= size
    return " ".join(parts[:2])


@register.filter
def milliseconds(ns: Number) -> str:
    """Nanoseconds as milliseconds without the unit, for a column whose heading names it."""
    return DASH if ns is None else significant(ns / 1e6)


@register.filter
def percent(fraction: Number, digits: int = 1) -> str:
    return DASH if fraction is None else f"{fraction * 100:.{int(digits)}f} %"


@register.filter
def percent_number(fraction: Number) -> str:
    """Per cent without the sign, for ranges that name it once."""
    return DASH if fraction is None else f"{fraction * 100:.0f}"


@register.filter
def speedup(ratio: Number) -> str:
    return DASH if ratio is None else f"{ratio:.3f}{TIMES.strip()}"


@register.filter
def ratio(value: Number) -> str:
    return DASH if value is None else f"{value:.3f}"


@register.filter
def flops(rate: Number) -> str:
    """FLOP/s with an SI prefix: `742.1 TFLOP/s`."""
    if rate is None:
        return DASH
    factor, prefix = next((pair for pair in _RATE_UNITS if rate >= pair[0]), (1, ""))
    return f"{significant(rate / factor)} {prefix}FLOP/s"


@register.filter
def tera(value: Number) -> str:
    """A rate in units of 1e12 without the unit, for a column whose heading names it."""
    return DASH if value is None else significant(value / 1e12)


@register.filter
def flop_count(count: Number) -> str:
    """A FLOP count with an SI prefix: `601.3 GFLOP`."""
    if count is None:
        return DASH
    factor, prefix = next((pair for pair in _RATE_UNITS if count >= pair[0]), (1, ""))
    return f"{significant(count / factor)} {prefix}FLOP"


@register.filter
def file_size(count: Number) -> str:
    if count is None:
        return DASH
    factor, unit = next((pair for pair in _BYTE_UNITS if count >= pair[0]), (1, "bytes"))
    return f"{count} {unit}" if factor == 1 else f"{significant(count / factor, 3)} {unit}"


@register.filter
def frequency(hz: Number) -> str:
    return DASH if hz is None else f"{hz / 1e6:.0f} MHz"


@register.filter
def grouped(count: Number) -> str:
    """A whole number with thin spaces between groups of three: `1 234 567`."""
    return DASH if count is None else f"{count:,}".replace(",", "\u202f")


@register.filter
def dollars(amount: Number) -> str:
    """US dollars with cents, with more digits where it is less than a cent: `$0.0031`."""
    if amount is None:
        return DASH
    return f"${amount:.2f}" if amount >= 0.01 or amount == 0 else f"${significant(amount, 2)}"


@register.filter
def scientific(value: Number) -> str:
    """Errors span decades, so they are set as `3.1e-03`; zero stays `0`."""
    if value is None:
        return DASH
    return "0" if value == 0 else f"{value:.2e}"


@register.filter
def instant(value: datetime | None) -> SafeString | str:
    """A `<time>` element in UTC, with the zone in the text and the ISO form in the attribute."""
    return _time(value, "%Y-%m-%d %H:%M UTC", "%A %d %B %Y, %H:%M:%S UTC")


@register.filter
def day(value: datetime | None) -> SafeString | str:
    """The date alone, in UTC; the instant stands in the attributes."""
    return _time(value, "%Y-%m-%d")


@register.filter
def ago(value: datetime | None) -> SafeString | str:
    """How long ago, in the largest whole unit, with the exact instant in the attributes."""
    return DASH if value is None else _time(value, age_text(value))


def _time(
    value: datetime | None, text: str, title: str = "%Y-%m-%d %H:%M:%S UTC"
) -> SafeString | str:
    """`text` and `title` are strftime formats; words without a per cent sign stand as they are."""
    if value is None:
        return DASH
    utc = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" class="nowrap">{}</time>',
        utc.isoformat(timespec="seconds"),
        utc.strftime(title),
        utc.strftime(text),
    )


def age_text(value: datetime) -> str:
    return _ago_text(timezone.now() - value)


def _ago_text(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


@register.filter
def short(digest: str | None) -> str:
    """The first twelve hex digits of a digest; the whole of it stands in the title."""
    return digest[:12] if digest else DASH


@register.filter
def short_title(title: str) -> str:
    """`NVIDIA H200` as `H200`, `CPU (development target)` as `CPU`, for narrow headings."""
    return title.removeprefix("NVIDIA ").partition(" (")[0]


@register.filter
def shape(dimensions: tuple[int, ...] | list[int] | None) -> str:
    if dimensions is None:
        return DASH
    return TIMES.join(str(size) for size in dimensions) if dimensions else "scalar"


@register.filter
def hexadecimal(value: int) -> str:
    return f"{value:#06x}"


@register.filter
def plain(value: Number) -> str:
    """A number as it stands in an address: `0.9`, `1`."""
    return DASH if value is None else f"{value:g}"
