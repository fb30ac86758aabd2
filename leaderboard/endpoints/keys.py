"""An endpoint's key at rest and in text: encrypted, and never shown.

PTXBOARD_SECRET_KEYS holds Fernet keys; the first encrypts, all of them decrypt, so that keys can be
rotated. Where one machine runs everything and none is set, one is kept in `endpoint_key` below
PTXBOARD_VAR, readable by its owner only.

Not covered: a key shorter than MIN_SECRET_CHARS is not taken out of text, since that would tear
answers apart; an endpoint that answers with the key in disguise (base64, letter by letter).
"""

import json
import os
import secrets
from pathlib import Path
from urllib.parse import quote

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

MIN_SECRET_CHARS = 8
REDACTED = "[key]"
HOW_TO_MAKE = (
    "make one with python -c "
    "'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
)


class KeyUnreadable(Exception):
    """A stored key that no secret key of ours opens; its owner must give it again."""


def encrypt(key: str) -> str:
    """ASCII ciphertext of an endpoint's key, safe to store."""
    return _fernet().encrypt(key.encode()).decode("ascii")


def decrypt(ciphertext: str) -> str:
    """The key again. Raises KeyUnreadable."""
    try:
        return _fernet().decrypt(ciphertext.encode()).decode()
    except InvalidToken:
        pass
    raise KeyUnreadable(
        "the stored key was encrypted with a secret key that PTXBOARD_SECRET_KEYS no longer holds; "
        "add that one at the end of the list, or give the endpoint's key again"
    )


def redact(text: str, secret: str, *, mark: str = REDACTED) -> str:
    """`text` with the secret, plain or escaped for a URL or for JSON, replaced by `mark`."""
    if len(secret) < MIN_SECRET_CHARS:
        return text
    for form in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}:
        text = text.replace(form, mark)
    return text


def is_secret_key(text: str) -> bool:
    try:
        Fernet(text)
    except ValueError:
        return False
    return True


def _fernet() -> MultiFernet:
    names = settings.PTXBOARD_SECRET_KEYS or [_kept_key(settings.PTXBOARD_VAR / "endpoint_key")]
    if all(map(is_secret_key, names)):
        return MultiFernet([Fernet(name) for name in names])
    raise ImproperlyConfigured(
        f"PTXBOARD_SECRET_KEYS holds {len(names)} keys, not all of them Fernet keys "
        f"(32 bytes in URL-safe base64); {HOW_TO_MAKE}"
    )


def _kept_key(path: Path) -> str:
    """The machine's own key, made at the first use; two processes at once agree on one."""
    if not settings.PTXBOARD_EMBEDDED:
        raise ImproperlyConfigured(
            "PTXBOARD_SECRET_KEYS is not set, but PTXBOARD_DATABASE_URL is; set it to a Fernet key "
            f"that every process of the site shares; {HOW_TO_MAKE}"
        )
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(Fernet.generate_key())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text(encoding="ascii").strip()
