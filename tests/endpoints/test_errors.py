"""Errors of an endpoint, sorted: what was seen, whether to try again, and when."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from leaderboard.endpoints.classification import EXCERPT_CHARS, Problem, seconds_of
from leaderboard.endpoints.errors import ErrorKind
from leaderboard.endpoints.parameters import Api
from tests.endpoints.conftest import LIMITS, Limits
from tests.endpoints.quirks_of_errors import OVERFLOWS


@pytest.mark.parametrize(
    ("status", "kind", "is_retryable"),
    [
        (400, ErrorKind.BAD_REQUEST, False),
        (401, ErrorKind.AUTH, False),
        (402, ErrorKind.RATE_LIMIT, False),
        (403, ErrorKind.AUTH, False),
        (404, ErrorKind.UNKNOWN_MODEL, False),
        (408, ErrorKind.TIMEOUT, True),
        (409, ErrorKind.SERVER, True),
        (422, ErrorKind.BAD_REQUEST, False),
        (500, ErrorKind.SERVER, True),
        (501, ErrorKind.SERVER, True),
        (502, ErrorKind.SERVER, True),
        (503, ErrorKind.SERVER, True),
        (504, ErrorKind.SERVER, True),
        (529, ErrorKind.SERVER, True),
    ],
)
@pytest.mark.parametrize("api", Api)
def test_a_status_with_a_web_page_is_sorted_and_quoted_in_part(
    failure, status, kind, is_retryable, api
):
    error = failure(f"status-{status}", api)
    assert (error.kind, error.is_retryable) == (kind, is_retryable)
    assert error.message.startswith(f"the endpoint answered with {status}")
    assert f"<h1>{status}</h1>" in error.message
    assert len(error.message) < EXCERPT_CHARS + 200


@pytest.mark.parametrize("name", OVERFLOWS)
def test_an_overflowing_context_is_known_in_every_wording(failure, server, name):
    error = failure(f"overflow-{name}")
    assert error.kind is ErrorKind.CONTEXT_EXCEEDED
    assert not error.is_retryable
    assert len(server.seen) == 1


def test_a_rate_limit_says_how_long_to_wait(failure):
    error = failure("limited-seconds")
    assert (error.kind, error.retry_after_seconds) == (ErrorKind.RATE_LIMIT, 7)
    assert error.is_retryable


def test_a_past_date_means_now(failure):
    assert failure("limited-past").retry_after_seconds == 0


def test_a_future_date_is_a_wait():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert seconds_of(soon) == pytest.approx(90, abs=2)


@pytest.mark.parametrize("text", [None, "", "soon", "nan", "Wed, 99 Foo 2026", "--1"])
def test_a_wait_that_cannot_be_read_is_none(text):
    assert seconds_of(text) is None


def test_a_wait_is_never_negative_nor_endless():
    assert seconds_of("-5") == 0
    assert seconds_of("inf") == seconds_of("1e300") == 366 * 86_400


def test_a_wait_of_a_day_is_not_slept_but_told(failure):
    error = failure("limited-day")
    assert (error.kind, error.is_retryable) == (ErrorKind.RATE_LIMIT, False)
    assert error.retry_after_seconds == 86_400
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert f"limited until {tomorrow:%Y-%m-%d}" in error.message


@pytest.mark.parametrize("quirk", ["limited-bare", "limited-nonsense"])
def test_a_rate_limit_without_a_time_may_be_tried_again(failure, quirk):
    error = failure(quirk)
    assert error.is_retryable
    assert error.retry_after_seconds is None


def test_an_exhausted_quota_is_not_tried_again(failure):
    error = failure("limited-spent")
    assert (error.kind, error.is_retryable) == (ErrorKind.RATE_LIMIT, False)
    assert "no quota left" in error.message


def test_a_quota_that_names_a_time_is_a_rate(failure):
    error = failure("limited-quota-rate")
    assert error.is_retryable
    assert error.retry_after_seconds == 31


def test_a_400_may_mean_the_model_or_the_key(failure):
    assert failure("no-model-400").kind is ErrorKind.UNKNOWN_MODEL
    assert failure("no-model-pinned").kind is ErrorKind.UNKNOWN_MODEL
    assert failure("no-key-400").kind is ErrorKind.AUTH


@pytest.mark.parametrize(
    ("quirk", "kind", "words"),
    [
        ("no_choices", ErrorKind.BAD_REPLY, "no choices"),
        ("error_with_200", ErrorKind.SERVER, "503 Service Unavailable: upstream is overloaded"),
        ("list_reply", ErrorKind.BAD_REPLY, "a JSON list"),
        ("not_json", ErrorKind.BAD_REPLY, "not JSON"),
        ("not_utf8", ErrorKind.BAD_REPLY, "not JSON in UTF-8"),
        ("deep_json", ErrorKind.BAD_REPLY, "not JSON"),
        ("ten_megabytes", ErrorKind.TOO_LARGE, "more than 4194304 bytes"),
        ("ten_megabyte_stream", ErrorKind.TOO_LARGE, "more than 4194304 bytes"),
        ("error_in_stream", ErrorKind.RATE_LIMIT, "inside its stream: Rate limit reached"),
        ("overflow_in_stream", ErrorKind.CONTEXT_EXCEEDED, "inside its stream"),
        ("cut_stream", ErrorKind.BAD_REPLY, "ended before its answer did"),
        ("broken_chunk", ErrorKind.BAD_REPLY, "broke off"),
        ("empty_stream", ErrorKind.BAD_REPLY, "no choices"),
        ("not_json_in_stream", ErrorKind.BAD_REPLY, "not JSON"),
        ("not_utf8_in_stream", ErrorKind.BAD_REPLY, "not JSON in UTF-8"),
    ],
)
def test_a_broken_reply_has_words_of_its_own(failure, quirk, kind, words):
    error = failure(quirk)
    assert (error.kind, words in error.message) == (kind, True), error.message


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("web_page", "check the base URL"),
        ("redirects", "redirects (307), which is not followed"),
        ("compressed", "compressed (gzip), which was not asked for"),
    ],
)
def test_what_only_the_user_can_mend_is_not_tried_again(failure, server, quirk, words):
    error = failure(quirk)
    assert (error.kind, error.is_retryable) == (ErrorKind.BAD_REPLY, False)
    assert words in error.message
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("quirk", "api", "kind", "words"),
    [
        ("messages_overloaded", Api.MESSAGES, ErrorKind.SERVER, "Overloaded"),
        ("messages_cut", Api.MESSAGES, ErrorKind.BAD_REPLY, "ended before its answer did"),
        ("messages_without_content", Api.MESSAGES, ErrorKind.BAD_REPLY, "no content"),
        ("empty_stream", Api.MESSAGES, ErrorKind.BAD_REPLY, "no events"),
        ("responses_failed", Api.RESPONSES, ErrorKind.RATE_LIMIT, "slow down"),
        ("responses_error", Api.RESPONSES, ErrorKind.SERVER, "it broke"),
        ("responses_cut", Api.RESPONSES, ErrorKind.BAD_REPLY, "ended before its answer did"),
        ("responses_queued", Api.RESPONSES, ErrorKind.BAD_REPLY, "not complete: queued"),
        ("empty_stream", Api.RESPONSES, ErrorKind.BAD_REPLY, "no events"),
    ],
)
def test_the_other_apis_break_in_their_own_ways(failure, quirk, api, kind, words):
    error = failure(quirk, api)
    assert (error.kind, words in error.message) == (kind, True), error.message


def test_a_stalled_stream_is_noticed(failure):
    start = time.monotonic()
    error = failure("stalls", limits=Limits(total_seconds=20, idle_seconds=0.5))
    assert (error.kind, error.is_retryable) == (ErrorKind.TIMEOUT, True)
    assert error.message == "the endpoint has stalled: it sent nothing for 0.5 s"
    assert time.monotonic() - start < 5


def test_silence_before_the_first_byte_is_a_stall(failure):
    error = failure("silent", limits=Limits(total_seconds=20, idle_seconds=0.5))
    assert error.message == "the endpoint has stalled: it sent nothing for 0.5 s"


def test_a_whole_reply_may_take_all_of_its_time_to_begin(failure):
    limits = Limits(total_seconds=1, idle_seconds=0.2)
    error = failure("silent", limits=limits, stream=False)
    assert "did not end its answer within 1 s" in error.message


def test_a_stream_that_only_pings_ends_with_the_time_of_a_call(failure):
    start = time.monotonic()
    error = failure("drips", limits=Limits(total_seconds=1, idle_seconds=10))
    assert error.kind is ErrorKind.TIMEOUT
    assert "did not end its answer within 1 s" in error.message
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("quirk", ["endless", "endless_headers", "endless_error"])
def test_a_reply_without_end_is_cut_at_its_limit(failure, quirk):
    error = failure(quirk, limits=Limits(total_seconds=20, reply_bytes=300_000))
    # h11 has a limit of its own for headers, which is lower
    kinds = (ErrorKind.TOO_LARGE, ErrorKind.BAD_REPLY)
    assert error.kind is kinds[quirk == "endless_headers"]


def test_a_field_that_is_refused_in_every_form_ends_the_call(failure, server):
    error = failure("never_content", max_tokens=5)
    assert error.kind is ErrorKind.BAD_REQUEST
    assert len(server.seen) <= 5


def test_parameters_that_an_api_lacks_are_refused_before_the_call(failure, server):
    error = failure("plain", Api.MESSAGES, seed=1, top_k=4)
    assert error.kind is ErrorKind.BAD_REQUEST
    assert error.message.startswith("the API anthropic-messages has no parameter seed")
    assert server.seen == []


def test_a_bare_word_is_an_error_too():
    error = Problem.of_json(None, "no").error()
    assert error.message == (
        "the endpoint answered inside its stream: no; the same call may be made again"
    )
    assert LIMITS.reply_bytes == 16 << 20
