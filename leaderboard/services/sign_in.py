"""A limit on guessing passwords: so many failures for one name from one address, then a pause.

The pair, not the name alone: a stranger must not be able to lock an author out.
Not covered: guesses spread over many addresses, or one password tried on many names; names here are
made by the operator, and passwords have at least ten characters.
"""

import unicodedata
from datetime import datetime, timedelta

from django.utils import timezone

from leaderboard.models import SignInFailure
from leaderboard.refusals import TooManySignIns

FAILURES = 10
WINDOW = timedelta(minutes=15)


def sign_in_try(*, username: str, address: str) -> None:
    """Counts as a failure until `sign_in_succeeded` says otherwise.

    The row is written, and seen by others, before it is counted: parallel guesses count too.
    Raises TooManySignIns.
    """
    now = timezone.now()
    SignInFailure.objects.filter(failed_at__lte=now - WINDOW).delete()
    pair = {"username": _folded(username), "address": address[:45]}
    mine = SignInFailure.objects.create(**pair, failed_at=now)
    before = SignInFailure.objects.filter(**pair, pk__lt=mine.pk)
    earlier = list(before.values_list("failed_at", flat=True)[:FAILURES])
    if len(earlier) >= FAILURES:
        mine.delete()
        raise TooManySignIns(
            failures=FAILURES, minutes=_minutes(WINDOW), retry_after_seconds=_wait(earlier[0], now)
        )


def sign_in_succeeded(*, username: str, address: str) -> None:
    SignInFailure.objects.filter(username=_folded(username), address=address[:45]).delete()


def _folded(username: str) -> str:
    """Spellings that look alike count as one."""
    plain = unicodedata.normalize("NFKC", username).casefold().replace("\x00", "")
    return plain[:150]


def _wait(oldest: datetime, now: datetime) -> int:
    return max(1, int((oldest + WINDOW - now).total_seconds()) + 1)


def _minutes(span: timedelta) -> int:
    return int(span.total_seconds() // 60)
