"""Typed environment variables; a wrong value names the variable, what was seen and what fits."""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = ("1", "true", "yes", "on")
FALSE_WORDS = ("0", "false", "no", "off")


def env_text(name: str, default: str) -> str:
    return os.environ.get(name, "").strip() or default


def env_bool(name: str, default: bool) -> bool:
    word = os.environ.get(name, "").strip().lower()
    if not word:
        return default
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    choices = ", ".join(TRUE_WORDS + FALSE_WORDS)
    raise ImproperlyConfigured(f"{name} is {word!r}; use one of {choices}")


def env_int(name: str, default: int, *, at_least: int = 0) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < at_least:
        raise ImproperlyConfigured(f"{name} is {text!r}; use a whole number of at least {at_least}")
    return int(text)


def env_path(name: str, default: Path) -> Path:
    """An absolute folder, made if it is missing."""
    path = Path(env_text(name, str(default))).expanduser().resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name} is {str(path)!r}, which cannot be made a folder: {error.strerror}"
        ) from error
    return path


def env_list(name: str, default: list[str]) -> list[str]:
    text = os.environ.get(name, "")
    return [part.strip() for part in text.split(",") if part.strip()] or default


def env_url(name: str, default: str, *, schemes: tuple[str, ...]) -> str:
    url = env_text(name, default)
    if urlsplit(url).scheme not in schemes:
        allowed = ", ".join(f"{scheme}://" for scheme in schemes)
        shown = url.partition("://")[0]
        raise ImproperlyConfigured(f"{name} starts with {shown!r}; use {allowed}")
    return url


def postgresql(url: str) -> dict[str, object]:
    """Django's settings of one PostgreSQL database from a URL; the query becomes OPTIONS."""
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured(
            "PTXBOARD_DATABASE_URL names no database; use postgresql://user:password@host:5432/name"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def sqlite(path: Path) -> dict[str, object]:
    """One file for several processes: WAL lets readers go on, IMMEDIATE queues the writers."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
    }
