"""Bring the problem rows in line with the evaluator's problem set."""

from django.core.management.base import BaseCommand, CommandError

from evaluator.problems import load_problems
from evaluator.problems.admissions import refusals
from leaderboard.services.catalogue import catalogue_sync


class Command(BaseCommand):
    help = "Store the evaluator's problems; versions that changed stay for their evaluations."

    def handle(self, *, verbosity: int, **options: object) -> None:
        records = list(load_problems().values())
        if refused := refusals(records):
            told = "\n".join(refused)
            raise CommandError(
                f"nothing is stored: wrong answers pass on {len(refused)} problems\n{told}\n"
                "Tighten their tolerance or take them out of the catalogue, then run "
                "`ptxboard admit` again."
            )
        synced = catalogue_sync(records=records)
        if verbosity:
            self.stdout.write(f"{len(synced.added)} added, {len(synced.retired)} retired")
