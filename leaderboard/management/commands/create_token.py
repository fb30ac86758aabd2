"""Make a token and print it once."""

from argparse import ArgumentParser
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evaluator.targets import TARGETS
from leaderboard.services.tokens import BadScope, token_create


class Command(BaseCommand):
    help = "Make a token for a user (to submit) or a worker (to evaluate); it is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        owner = parser.add_mutually_exclusive_group(required=True)
        owner.add_argument("--user", help="name of an existing user")
        owner.add_argument("--worker", help="name of the machine or pool")
        parser.add_argument("--lane", choices=["build"], help="may build, for any target")
        parser.add_argument(
            "--target",
            nargs="+",
            action="extend",
            choices=list(TARGETS),
            help="may run kernels of these targets",
        )
        parser.add_argument("--label", default="")
        parser.add_argument("--days", type=int, help="expires after so many days")

    def handle(
        self,
        *,
        user: str | None = None,
        worker: str | None = None,
        lane: str | None = None,
        target: list[str] | None = None,
        label: str,
        days: int | None,
        **_: object,
    ) -> None:
        expires_at = timezone.now() + timedelta(days=days) if days else None
        if worker:
            secret = _worker_token(worker, lane, target or [], label, expires_at)
        elif lane or target:
            raise CommandError("--lane and --target say what a worker may do; a user only submits")
        else:
            owner = User.objects.filter(username=user).first()
            if owner is None:
                raise CommandError(f"there is no user {user!r}; make one with createsuperuser")
            _, secret = token_create(user=owner, label=label, expires_at=expires_at)
        self.stdout.write(secret)


def _worker_token(
    worker: str, lane: str | None, targets: list[str], label: str, expires_at: datetime | None
) -> str:
    try:
        _, secret = token_create(
            worker_name=worker,
            lanes=[lane] if lane else [],
            targets=targets,
            label=label,
            expires_at=expires_at,
        )
    except BadScope as error:
        raise CommandError(f"{error}. Add --lane build or --target NAME.") from error
    return secret
