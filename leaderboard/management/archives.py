"""What a command says of an archive that cannot be taken in."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import DatabaseError

from leaderboard.refusals import Refusal


@contextmanager
def faults_told(subject: object) -> Iterator[None]:
    """Raises CommandError that begins with `subject`, whatever part of the archive was wrong."""
    try:
        yield
    except (ValueError, OSError, Refusal, ValidationError) as error:
        raise CommandError(f"{subject}: {error}") from error
    except (LookupError, TypeError, AttributeError, DatabaseError) as error:
        kind = type(error).__name__
        raise CommandError(f"{subject}: parts are missing or odd: {kind} {error}") from error
