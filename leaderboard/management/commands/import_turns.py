"""Take in per-turn results that somebody else reports; all of a file or nothing."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from leaderboard.services.imports import REPORTER, turns_import
from leaderboard.services.imports_notes import PTXBENCH_NOTES, read_notes


class Command(BaseCommand):
    help = "Load FILE.csv or FILE.csv.gz of turns as self-reported runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--by", default=REPORTER, help="who reports it; owns the entrants")
        parser.add_argument(
            "--notes",
            type=Path,
            default=PTXBENCH_NOTES,
            help="JSON with what the file does not say of its runs; PTXBench's if left out",
        )

    def handle(
        self, *, file: str | Path, by: str, notes: str | Path, verbosity: int, **_: object
    ) -> None:
        try:
            done = turns_import(path=Path(file), notes=read_notes(Path(notes)), reporter=by)
        except (ValueError, OSError) as error:
            raise CommandError(f"{file}: nothing was taken in:\n{error}") from error
        if not verbosity:
            return
        known = f"; {done.known} were here already" if done.known else ""
        self.stdout.write(f"{len(done.runs)} runs, {done.turn_count} turns{known}")
        for run, why in done.left_out.items():
            self.stdout.write(f"left out {run}: {why}")
        for run in done.runs:
            if run.unranked_reason:
                self.stdout.write(f"not ranked {run.name}: {run.unranked_reason}")
