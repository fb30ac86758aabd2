"""Take in a folder that dump wrote; what is here already stays as it is."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from leaderboard.management.archives import faults_told
from leaderboard.services.dumps_reading import dump_load


class Command(BaseCommand):
    help = "Verify a dump and load it, all or nothing; into an empty site the boards must be equal."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *, folder: str | Path, verbosity: int, **_: object) -> None:
        with faults_told("nothing was loaded"):
            done = dump_load(Path(folder))
        if verbosity:
            self.stdout.write(
                f"{done.problems} problems, {done.runs} runs, {done.submissions} submissions, "
                f"{done.published} published rows; {done.known} were here already"
            )
            if done.boards_compared:
                self.stdout.write("the boards are those of the dump")
