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


def model_entrant_of(*, owner: User, model: str) -> Entrant:
    """The entrant of a model that this user's endpoint answers for, made at its first run.

    Two users who name the same model get two entrants: nobody speaks for another's model.
    """
    found = Entrant.objects.filter(owner=owner, kind=Entrant.Kind.MODEL, display_name=model[:100])
    if entrant := found.first():
        return entrant
    base = slugify(f"{model[:30]}-by-{owner.get_username()[:20]}")[:50] or "model"
    taken = Entrant.objects.filter(slug__startswith=base).count()
    slug = f"{base}-{taken + 1}" if Entrant.objects.filter(slug=base).exists() else base
    try:
        with transaction.atomic():
            return Entrant.objects.create(
                slug=slug, display_name=model[:100], kind=Entrant.Kind.MODEL, owner=owner
            )
    except IntegrityError:
        if entrant := found.first():
            return entrant
        raise
