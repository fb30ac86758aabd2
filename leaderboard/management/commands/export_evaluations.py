"""Write evaluated submissions as bundles, one archive each, for another site or for the tests."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.utils.text import slugify

from leaderboard.models import Submission
from leaderboard.services.bundle import bundle_write


class Command(BaseCommand):
    help = "Write <name>_<id>.zip for every evaluated submission (or the named ones) to a folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--submission", action="append", help="identifier; may repeat")
        parser.add_argument("--target", help="only of this target")

    def handle(
        self, *, folder: Path, submission: list[str] | None, target: str | None, **_: object
    ) -> None:
        rows = Submission.objects.filter(evaluations__valid=True).order_by("created_at", "id")
        rows = rows.select_related("entrant", "problem")
        if submission:
            rows = rows.filter(pk__in=submission)
        if target:
            rows = rows.filter(target=target)
        if not rows.exists():
            raise CommandError("there is no evaluated submission that fits; nothing was written")
        folder.mkdir(parents=True, exist_ok=True)
        for row in rows:
            path = folder / f"{slugify(row.name)[:60] or 'kernel'}_{str(row.pk)[:8]}.zip"
            with path.open("wb") as out:
                bundle_write(submission=row, out=out)
            self.stdout.write(f"{path} {row.verdict}")
