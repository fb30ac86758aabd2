"""Bring the problem rows in line with the evaluator's problem set."""

from django.core.management.base import BaseCommand

from evaluator.problems import load_problems
from leaderboard.services.catalogue import catalogue_sync


class Command(BaseCommand):
    help = "Store the evaluator's problems; versions that changed stay for their evaluations."

    def handle(self, *, verbosity: int, **options: object) -> None:
        synced = catalogue_sync(records=load_problems().values())
        if verbosity:
            self.stdout.write(f"{len(synced.added)} added, {len(synced.retired)} retired")
