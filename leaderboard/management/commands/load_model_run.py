"""Take in a model run that export_model_run wrote; one that is here already stays as it is."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from leaderboard.management.archives import faults_told
from leaderboard.services.run_bundle_reading import run_bundle_load, run_bundle_read


class Command(BaseCommand):
    help = "Verify archives of model runs and load them with their kernels."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path)

    def handle(self, *, paths: list[str | Path], verbosity: int, **_: object) -> None:
        for path in [Path(path) for path in paths]:
            with faults_told(path):
                run = run_bundle_load(run_bundle_read(path))
            if verbosity:
                told = f"{run.name}: {run.state}" if run else "known already"
                self.stdout.write(f"{path.name}: {told}")
