"""Write a model run that has ended as one archive, for another site or for the demo."""

from argparse import ArgumentParser
from pathlib import Path
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils.text import slugify

from leaderboard.models import ModelRun
from leaderboard.refusals import Refusal
from leaderboard.services.run_bundle import run_bundle_write


class Command(BaseCommand):
    help = "Write <name>_<id>.zip with the run's prompts, turns, kernels and evidence to a folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID)
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--libraries", action="store_true", help="keep the built libraries, which are large"
        )

    def handle(self, *, run: UUID | str, folder: str | Path, libraries: bool, **_: object) -> None:
        row = ModelRun.objects.select_related("entrant", "problem").filter(pk=run).first()
        if row is None:
            raise CommandError(f"there is no model run {run}; its page's address ends in its id")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{slugify(row.name)[:60] or 'run'}_{str(row.pk)[:8]}.zip"
        partial = path.with_suffix(".part")
        try:
            with partial.open("wb") as out:
                run_bundle_write(run=row, out=out, libraries=libraries)
            partial.replace(path)
        except Refusal as refusal:
            raise CommandError(refusal.detail) from refusal
        finally:
            partial.unlink(missing_ok=True)
        self.stdout.write(f"{path} {path.stat().st_size} bytes")
