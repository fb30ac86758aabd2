"""Who is ranked: a person, a lab or a model."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Entrant(models.Model):
    """`user` is the person; a model has none, but an `owner`, whose endpoint answered for it."""

    class Kind(models.TextChoices):
        PERSON = "person"
        LAB = "lab"
        MODEL = "model"

    slug = models.SlugField(max_length=60, unique=True)
    display_name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.PERSON)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="entrant",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="model_entrants",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "display_name"],
                condition=Q(kind="model", owner__isnull=False),
                name="entrant_model_is_its_owners_only_one",
            )
        ]

    def __str__(self) -> str:
        return self.display_name
