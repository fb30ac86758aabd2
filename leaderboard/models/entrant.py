"""Who is ranked: a person, a lab or a model."""

from django.conf import settings
from django.db import models


class Entrant(models.Model):
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
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.display_name
