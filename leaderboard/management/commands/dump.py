"""Write everything public to a folder: a FlashInfer trace set and our own archives beside it."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from leaderboard.services.dumps import dump_write


class Command(BaseCommand):
    help = "Write definitions, solutions, traces, runs and boards to a new folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *, folder: str | Path, verbosity: int, **_: object) -> None:
        try:
            counts = dump_write(Path(folder))
        except (ValueError, OSError) as error:
            raise CommandError(str(error)) from error
        if verbosity:
            self.stdout.write(", ".join(f"{count} {name}" for name, count in counts.items()))
