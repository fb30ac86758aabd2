"""Take in bundles that export_evaluations wrote; what is here already stays as it is."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from leaderboard.refusals import Refusal
from leaderboard.services.bundle_reading import bundle_load, bundle_read


class Command(BaseCommand):
    help = "Verify bundles (files or folders of them) and load their evaluations."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path)

    def handle(self, *, paths: list[str | Path], verbosity: int, **_: object) -> None:
        for path in _archives([Path(path) for path in paths]):
            try:
                submission = bundle_load(bundle_read(path))
            except (ValueError, Refusal, ValidationError) as error:
                raise CommandError(f"{path}: {error}") from error
            except (LookupError, TypeError, AttributeError, DatabaseError) as error:
                kind = type(error).__name__
                raise CommandError(f"{path}: parts are missing or odd: {kind} {error}") from error
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
