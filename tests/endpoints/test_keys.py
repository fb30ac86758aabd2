"""Keys at rest: encrypted with keys that can be rotated, one file on a single machine."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from leaderboard.endpoints.keys import KeyUnreadable, decrypt, encrypt, redact

KEY = "sk-canary-5f0c9e7d1b"


@pytest.fixture
def var(settings, tmp_path):
    settings.PTXBOARD_VAR = tmp_path
    settings.PTXBOARD_EMBEDDED = True
    settings.PTXBOARD_SECRET_KEYS = []
    return tmp_path


def test_a_key_comes_back_and_does_not_show_at_rest(var):
    stored = encrypt(KEY)
    assert decrypt(stored) == KEY
    assert KEY not in stored
    assert encrypt(KEY) != stored


def test_one_machine_keeps_a_secret_key_that_only_its_owner_reads(var):
    stored = encrypt(KEY)
    kept = var / "endpoint_key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert Fernet(kept.read_bytes()).decrypt(stored.encode()) == KEY.encode()
    assert [path.name for path in var.iterdir()] == ["endpoint_key"]


def test_processes_that_start_at_once_agree_on_the_secret_key(var):
    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(encrypt, [KEY] * 32))
    assert {decrypt(each) for each in stored} == {KEY}
    assert [path.name for path in var.iterdir()] == ["endpoint_key"]


def test_secret_keys_can_be_rotated(var, settings):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.PTXBOARD_SECRET_KEYS = [old]
    stored = encrypt(KEY)
    settings.PTXBOARD_SECRET_KEYS = [new, old]
    assert decrypt(stored) == KEY
    assert Fernet(new).decrypt(encrypt(KEY).encode()) == KEY.encode()
    assert not (var / "endpoint_key").exists()


@pytest.mark.parametrize("stored", ["", "nonsense", "gAAAAABn"])
def test_what_no_secret_key_opens_says_what_to_do(var, stored):
    with pytest.raises(KeyUnreadable, match="give the endpoint's key again"):
        decrypt(stored)


def test_a_lost_secret_key_says_what_to_do(var, settings):
    stored = encrypt(KEY)
    settings.PTXBOARD_SECRET_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(KeyUnreadable, match="no longer holds") as caught:
        decrypt(stored)
    assert stored not in str(caught.value)


def test_several_machines_need_a_common_secret_key(var, settings):
    settings.PTXBOARD_EMBEDDED = False
    with pytest.raises(ImproperlyConfigured, match=r"PTXBOARD_SECRET_KEYS is not set.*make one"):
        encrypt(KEY)
    assert list(var.iterdir()) == []


def test_a_secret_key_of_the_wrong_form_is_not_repeated(var, settings):
    settings.PTXBOARD_SECRET_KEYS = [Fernet.generate_key().decode(), "short-secret"]
    with pytest.raises(ImproperlyConfigured, match="holds 2 keys, not all of them") as caught:
        encrypt(KEY)
    assert "short-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "redacted"),
    [
        (KEY, f"a {KEY} b {KEY}", "a [key] b [key]"),
        ("key/with+more", "u=key%2Fwith%2Bmore", "u=[key]"),
        ('key"with\\more', r"{'a': 'key\"with\\more'}", "{'a': '[key]'}"),
        ("short", "a short word", "a short word"),
        ("", "nothing", "nothing"),
    ],
)
def test_a_key_is_taken_out_of_text_however_it_is_written(key, text, redacted):
    assert redact(text, key) == redacted
