"""The entrant that a user submits as."""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from leaderboard.models import Entrant


def entrant_of(*, user: User) -> Entrant:
    """The user's entrant, made at the first submission; the slug is kept for good."""
    entrant = Entrant.objects.filter(user=user).first()
    if entrant:
        return entrant
    base = slugify(user.get_username())[:50] or "entrant"
    for slug in (base, f"{base}-{user.pk}"):
        try:
            with transaction.atomic():
                return Entrant.objects.create(
                    slug=slug, display_name=user.get_full_name() or user.get_username(), user=user
                )
        except IntegrityError:
            if entrant := Entrant.objects.filter(user=user).first():
                return entrant
    raise IntegrityError(f"no free slug for user {user.pk}: tried {base} and {base}-{user.pk}")
