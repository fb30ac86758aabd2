"""System checks for settings that are each right but wrong together."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from leaderboard.endpoints.addresses import Allowed
from leaderboard.endpoints.keys import HOW_TO_MAKE, is_secret_key


@register()
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    memory = settings.PTXBOARD_BROKER_URL.startswith("memory")
    filesystem = settings.PTXBOARD_BROKER_URL.startswith("filesystem")
    public = settings.PTXBOARD_SITE_URL.startswith("https://")
    if memory and not settings.DEBUG:
        found.append(
            Error(
                "PTXBOARD_BROKER_URL is memory://, which no other process can hear.",
                hint="Use filesystem:// on one machine, redis:// on several.",
                id="leaderboard.E001",
            )
        )
    if filesystem and not settings.PTXBOARD_EMBEDDED:
        found.append(
            Warning(
                "The database is PostgreSQL but the broker is a folder of this machine.",
                hint="Workers on other machines need PTXBOARD_BROKER_URL=redis://host:6379/0, "
                "or poll with 'ptxboard worker --poll'.",
                id="leaderboard.W001",
            )
        )
    if settings.DEBUG and public:
        found.append(
            Error(
                f"PTXBOARD_DEBUG is on while PTXBOARD_SITE_URL is {settings.PTXBOARD_SITE_URL}.",
                hint="Debug pages show settings to visitors; unset PTXBOARD_DEBUG.",
                id="leaderboard.E002",
            )
        )
    if public and _only_local(settings.ALLOWED_HOSTS):
        found.append(
            Error(
                f"PTXBOARD_SITE_URL is {settings.PTXBOARD_SITE_URL}, but PTXBOARD_ALLOWED_HOSTS "
                f"holds only {', '.join(settings.ALLOWED_HOSTS)}.",
                hint="Set PTXBOARD_ALLOWED_HOSTS to the site's host name.",
                id="leaderboard.E003",
            )
        )
    return found


@register()
def check_endpoint_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    from webapp.celery import LONGEST_TASK_SECONDS  # which reads the settings itself

    found: list[CheckMessage] = []
    try:
        Allowed.read(settings.PTXBOARD_ENDPOINT_HOSTS)
    except ValueError as error:
        hint = "Example: PTXBOARD_ENDPOINT_HOSTS=vllm.lab:8000,10.1.0.0/16"
        found.append(Error(f"{error}.", hint=hint, id="leaderboard.E004"))
    if settings.PTXBOARD_ENDPOINT_SECONDS > LONGEST_TASK_SECONDS:
        seen = settings.PTXBOARD_ENDPOINT_SECONDS
        message = (
            f"PTXBOARD_ENDPOINT_SECONDS is {seen}, but a task may take {LONGEST_TASK_SECONDS}."
        )
        hint = f"Set it to at most {LONGEST_TASK_SECONDS}."
        found.append(Error(message, hint=hint, id="leaderboard.E006"))
    if settings.PTXBOARD_SECRET_KEYS and not all(map(is_secret_key, settings.PTXBOARD_SECRET_KEYS)):
        message = "PTXBOARD_SECRET_KEYS holds something that is no Fernet key."
        found.append(Error(message, hint=f"Please {HOW_TO_MAKE}.", id="leaderboard.E005"))
    if not (settings.PTXBOARD_SECRET_KEYS or settings.PTXBOARD_EMBEDDED):
        message = "PTXBOARD_SECRET_KEYS is not set, so no model run can keep its endpoint's key."
        found.append(Warning(message, hint=f"Please {HOW_TO_MAKE}.", id="leaderboard.W002"))
    return found


def _only_local(hosts: list[str]) -> bool:
    return set(hosts) <= {"localhost", "127.0.0.1", "[::1]"}
