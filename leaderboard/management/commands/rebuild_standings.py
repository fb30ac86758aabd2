"""Compute every measured standing anew from its turns; boards then show what the turns say."""

from django.core.management.base import BaseCommand

from leaderboard.models import ModelStanding
from leaderboard.services.standings_update import PUBLISHED, standing_values, standings_rebuild


class Command(BaseCommand):
    help = "Rebuild the rows that boards of models are read from, and say how many differed."

    def handle(self, *, verbosity: int, **_: object) -> None:
        before = _values()
        count = standings_rebuild()
        changed = len(_values() ^ before)
        if verbosity:
            self.stdout.write(f"{count} standings; {changed} rows new, gone or changed")


def _values() -> set[tuple[object, ...]]:
    rows = ModelStanding.objects.exclude(trust=PUBLISHED)
    return {tuple(standing_values(row).values()) for row in rows.iterator()}
