"""Sign-ins that failed lately, so that nobody guesses passwords at leisure."""

from django.db import models


class SignInFailure(models.Model):
    """One failed sign-in; rows older than the window are deleted as new ones come."""

    username = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    failed_at = models.DateTimeField()

    class Meta:
        ordering = ["failed_at", "id"]
        indexes = [
            # how often one address failed for one name lately
            models.Index(fields=["username", "address", "failed_at"], name="sign_in_failures"),
            # what is too old to count
            models.Index(fields=["failed_at"], name="sign_in_failures_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.username} from {self.address} at {self.failed_at:%Y-%m-%d %H:%M:%S}"
