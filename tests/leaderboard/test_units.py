from datetime import UTC, datetime, timedelta, timezone

import pytest

from leaderboard.templatetags import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "—"),
        (0, "0 ns"),
        (7, "7.000 ns"),
        (999, "999.0 ns"),
        (83_120, "83.12 µs"),
        (631_800, "631.8 µs"),
        (1_234_567, "1.235 ms"),
        (14_800_000_000, "14.80 s"),
        (123_456_000_000, "123.5 s"),
    ],
)
def test_it_writes_a_duration_in_its_largest_unit(ns, text):
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.08312, "0.08312"), (0.5, "0.5000"), (1.0, "1.000"), (742.1, "742.1"), (12345.6, "12346")],
)
def test_it_keeps_four_significant_digits(value, text):
    assert units.significant(value) == text


def test_it_writes_fractions_rates_and_sizes():
    assert units.percent(0.0481) == "4.8 %"
    assert units.speedup(0.9481) == "0.948" + units.TIMES.strip()
    assert units.flops(742.1e12) == "742.1 TFLOP/s"
    assert units.flop_count(601_295_421_440) == "601.3 GFLOP"
    assert units.file_size(512) == "512 bytes"
    assert units.file_size(1 << 20) == "1.00 MiB"
    assert units.grouped(58_720_256) == "58\u202f720\u202f256"
    assert units.scientific(0.0031) == "3.10e-03"
    assert units.scientific(0) == "0"
    assert units.frequency(1_980_000_000) == "1980 MHz"
    assert units.hexadecimal(0xA40) == "0x0a40"


@pytest.mark.parametrize(
    "write",
    [
        units.duration,
        units.milliseconds,
        units.percent,
        units.speedup,
        units.ratio,
        units.flops,
        units.tera,
        units.flop_count,
        units.file_size,
        units.frequency,
        units.grouped,
        units.scientific,
        units.instant,
        units.day,
        units.ago,
        units.short,
        units.shape,
    ],
)
def test_it_writes_a_dash_for_what_is_not_known(write):
    assert write(None) == "—"


def test_it_writes_instants_with_their_zone():
    tokyo = timezone(timedelta(hours=9))
    html = units.instant(datetime(2026, 3, 1, 0, 30, tzinfo=tokyo))
    assert 'datetime="2026-02-28T15:30:00+00:00"' in html
    assert ">2026-02-28 15:30 UTC</time>" in html


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=5), "5 s ago"),
        (timedelta(seconds=119), "1 min ago"),
        (timedelta(hours=47), "1 d ago"),
        (timedelta(seconds=-30), "0 s ago"),
    ],
)
def test_it_tells_how_long_ago_in_the_largest_unit(age, text, monkeypatch):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    monkeypatch.setattr(units.timezone, "now", lambda: now)
    assert f">{text}</time>" in units.ago(now - age)


def test_a_times_title_has_the_whole_instant_however_short_its_text():
    when = datetime(2026, 11, 29, 14, 5, 9, tzinfo=UTC)
    assert 'title="2026-11-29 14:05:09 UTC"' in units.day(when)
    assert 'title="Sunday 29 November 2026, 14:05:09 UTC"' in units.instant(when)
    assert units.day(when).endswith(">2026-11-29</time>")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0 s"),
        (41.9, "41 s"),
        (60, "1 min"),
        (3665, "1 h 1 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_it_writes_how_long_people_waited(seconds, text: str):
    assert units.elapsed(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, "—"), (0, "$0.00"), (11.7, "$11.70"), (0.0031, "$0.0031"), (1234.5, "$1234.50")],
)
def test_it_writes_dollars(amount, text: str):
    assert units.dollars(amount) == text
