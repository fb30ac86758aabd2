"""Take in a model run that export_model_run wrote; one that is here already stays as it is."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from leaderboard.refusals import Refusal
from leaderboard.services.run_bundle_reading import run_bundle_load, run_bundle_read


class Command(BaseCommand):
    help = "Verify archives of model runs and load them with their kernels."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path)

    def handle(self, *, paths: list[str | Path], verbosity: int, **_: object) -> None:
        for path in [Path(path) for path in paths]:
            try:
                run = run_bundle_load(run_bundle_read(path))
            except (ValueError, Refusal, ValidationError) as error:
                raise CommandError(f"{path}: {error}") from error
            except (LookupError, TypeError, AttributeError, DatabaseError) as error:
                kind = type(error).__name__
                raise CommandError(f"{path}: parts are missing or odd: {kind} {error}") from error
            if verbosity:
                told = f"{run.name}: {run.state}" if run else "known already"
                self.stdout.write(f"{path.name}: {told}")
