"""Take in a folder that dump wrote; what is here already stays as it is."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from leaderboard.refusals import Refusal
from leaderboard.services.dumps_reading import dump_load


class Command(BaseCommand):
    help = "Verify a dump and load it, all or nothing; into an empty site the boards must be equal."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *, folder: str | Path, verbosity: int, **_: object) -> None:
        try:
            done = dump_load(Path(folder))
        except (ValueError, OSError, Refusal, ValidationError) as error:
            raise CommandError(f"nothing was loaded: {error}") from error
        except (LookupError, TypeError, AttributeError, DatabaseError) as error:
            kind = type(error).__name__
            raise CommandError(f"nothing was loaded: parts are odd: {kind} {error}") from error
        if verbosity:
            self.stdout.write(
                f"{done.problems} problems, {done.runs} runs, {done.submissions} submissions, "
                f"{done.published} published rows; {done.known} were here already"
            )
            if done.boards_compared:
                self.stdout.write("the boards are those of the dump")
