"""Make a token and print it once."""

from argparse import ArgumentParser
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from leaderboard.services.tokens import token_create


class Command(BaseCommand):
    help = "Make a token for a user (to submit) or a worker (to evaluate); it is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        owner = parser.add_mutually_exclusive_group(required=True)
        owner.add_argument("--user", help="name of an existing user")
        owner.add_argument("--worker", help="name of the machine or pool")
        parser.add_argument("--label", default="")
        parser.add_argument("--days", type=int, help="expires after so many days")

    def handle(
        self, *, user: str | None, worker: str | None, label: str, days: int | None, **_: object
    ) -> None:
        expires_at = timezone.now() + timedelta(days=days) if days else None
        if worker:
            _, secret = token_create(worker_name=worker, label=label, expires_at=expires_at)
        else:
            owner = User.objects.filter(username=user).first()
            if owner is None:
                raise CommandError(f"there is no user {user!r}; make one with createsuperuser")
            _, secret = token_create(user=owner, label=label, expires_at=expires_at)
        self.stdout.write(secret)
