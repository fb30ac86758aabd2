"""The user of `make demo`: a password to sign in with and a token for scripts."""

import os
import secrets
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand

from evaluator.records.base import sha256_hex
from leaderboard.models import ApiToken
from leaderboard.services.entrants import entrant_of
from leaderboard.services.tokens import token_create


class Command(BaseCommand):
    help = "Make the user 'demo'; password and token are kept in files below PTXBOARD_VAR."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--token-file", dest="token_file")
        parser.add_argument("--password-file", dest="password_file")

    def handle(self, **options: object) -> None:
        token_file = Path(str(options["token_file"] or settings.PTXBOARD_VAR / "demo_token"))
        password_file = Path(
            str(options["password_file"] or settings.PTXBOARD_VAR / "demo_password")
        )
        user, _ = User.objects.get_or_create(username="demo")
        entrant_of(user=user)
        password = _kept(password_file, os.environ.get("PTXBOARD_DEMO_PASSWORD", ""))
        if not user.check_password(password):
            user.set_password(password)
            user.save(update_fields=["password"])
        secret = token_file.read_text().strip() if token_file.exists() else ""
        if not _is_good(secret, user):
            _, secret = token_create(user=user, label="demo")
            _write(token_file, secret)
        self.stdout.write(f"user demo; password in {password_file}, token in {token_file}")


def _kept(path: Path, wanted: str) -> str:
    if not wanted and path.exists():
        return path.read_text().strip()
    password = wanted or secrets.token_urlsafe(12)
    _write(path, password)
    return password


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text + "\n")


def _is_good(secret: str, user: User) -> bool:
    """A file that another database wrote is of no use."""
    digest = sha256_hex(secret.encode())
    return ApiToken.objects.filter(digest=digest, user=user, revoked_at=None).exists()
