"""Load a paper's own figures as published rows; a file that was loaded before replaces itself."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from leaderboard.services.imports import REPORTER
from leaderboard.services.imports_published import PTXBENCH_RESULTS, published_load


class Command(BaseCommand):
    help = "Load published triplets; they are shown with their source and never ranked."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", default=PTXBENCH_RESULTS)
        parser.add_argument("--by", default=REPORTER, help="whose models they are")

    def handle(self, *, file: str | Path, by: str, verbosity: int, **_: object) -> None:
        try:
            count = published_load(path=Path(file), reporter=by)
        except (ValueError, OSError) as error:
            raise CommandError(f"{file}: nothing was loaded: {error}") from error
        if verbosity:
            self.stdout.write(f"{count} published rows")
