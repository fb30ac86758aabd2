"""The design language: written down whole, legible in both themes, and used everywhere."""

import re
from pathlib import Path

import pytest
from django.conf import settings

CSS = Path(settings.BASE_DIR) / "static" / "css"
TOKENS = (CSS / "tokens.css").read_text()
CONTRIBUTING = (Path(settings.BASE_DIR) / "CONTRIBUTING.md").read_text()
PAIRS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS)
}
GROUNDS = ("paper", "panel")
TEXTS = ("ink", "ink-2", "ink-3", "link", "pass", "fail", "unsure", "ours", "live")
SERIES = tuple(f"data-{number}" for number in range(1, 9))


def luminance(color: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("text", TEXTS)
def test_text_is_legible_on_every_ground(text: str, ground: str, theme: int):
    assert contrast(PAIRS[text][theme], PAIRS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("series", SERIES)
def test_lines_of_drawings_stand_out(series: str, theme: int):
    assert contrast(PAIRS[series][theme], PAIRS["paper"][theme]) >= 3.0


def test_every_token_is_written_down():
    names = set(re.findall(r"^\s+--([\w-]+):", TOKENS, re.MULTILINE))
    told = set(re.findall(r"`--([\w-]+)`", CONTRIBUTING))
    for first, last in re.findall(r"`--([\w-]+\d)` \.\.\. `--[\w-]+?(\d)`", CONTRIBUTING):
        told |= {f"{first[:-1]}{number}" for number in range(int(first[-1]), int(last) + 1)}
    assert names == told


@pytest.mark.parametrize("path", sorted(CSS.glob("*.css")), ids=lambda path: path.name)
def test_colours_come_from_tokens_only(path: Path):
    if path.name != "tokens.css":
        assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;,\s)])", path.read_text()) == []


def test_every_token_that_is_used_exists():
    known = set(re.findall(r"--([\w-]+):", "".join(p.read_text() for p in CSS.glob("*.css"))))
    for path in CSS.glob("*.css"):
        assert set(re.findall(r"var\(--([\w-]+)", path.read_text())) <= known, path.name
