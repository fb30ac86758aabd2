"""Take in bundles that export_evaluations wrote; what is here already stays as it is."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from leaderboard.management.archives import faults_told
from leaderboard.services.bundle_reading import bundle_load, bundle_read


class Command(BaseCommand):
    help = "Verify bundles (files or folders of them) and load their evaluations."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path)

    def handle(self, *, paths: list[str | Path], verbosity: int, **_: object) -> None:
        for path in _archives([Path(path) for path in paths]):
            with faults_told(path):
                submission = bundle_load(bundle_read(path))
            if verbosity:
                told = f"{submission.name}: {submission.verdict}" if submission else "known already"
                self.stdout.write(f"{path.name}: {told}")


def _archives(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise CommandError(f"{path}: there is no such file or folder")
        found += sorted(path.glob("*.zip")) if path.is_dir() else [path]
    return found
