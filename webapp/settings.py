"""Settings of the site, all from the environment; with none set, one machine runs everything.

Embedded (default): SQLite and a file-system broker below PTXBOARD_VAR. Production: PostgreSQL by
PTXBOARD_DATABASE_URL, Redis by PTXBOARD_BROKER_URL, a secret key and the site's address.
"""

import secrets
from pathlib import Path

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from webapp.environ import (
    env_bool,
    env_int,
    env_list,
    env_path,
    env_text,
    env_url,
    postgresql,
    sqlite,
)

BASE_DIR = Path(__file__).resolve().parent.parent
PTXBOARD_VAR = env_path("PTXBOARD_VAR", BASE_DIR / "var")
PTXBOARD_ARTIFACTS = PTXBOARD_VAR / "artifacts"
PTXBOARD_BROKER_FOLDER = PTXBOARD_VAR / "broker"
PTXBOARD_DATABASE_URL = env_url(
    "PTXBOARD_DATABASE_URL", "sqlite://", schemes=("postgresql", "postgres", "sqlite")
)
PTXBOARD_EMBEDDED = PTXBOARD_DATABASE_URL.startswith("sqlite")
PTXBOARD_BROKER_URL = env_url(
    "PTXBOARD_BROKER_URL", "filesystem://", schemes=("filesystem", "redis", "rediss", "memory")
)
PTXBOARD_SITE_URL = env_url(
    "PTXBOARD_SITE_URL", "http://127.0.0.1:8000", schemes=("http", "https")
).rstrip("/")
PTXBOARD_IN_FLIGHT_LIMIT = env_int("PTXBOARD_IN_FLIGHT_LIMIT", 20, at_least=1)
PTXBOARD_RUN_LIMIT = env_int("PTXBOARD_RUN_LIMIT", 20, at_least=1)
PTXBOARD_PARALLEL_LIMIT = env_int("PTXBOARD_PARALLEL_LIMIT", 16, at_least=1)
# After a fault of ours the next attempt waits: a worker whose disk is full or whose GPU has fallen
# off the bus would otherwise burn all three attempts within a second. 5 s lets a hiccup pass, 30 s
# lets a judge or a container start anew.
PTXBOARD_RETRY_DELAYS_SECONDS = (5, 30)
PTXBOARD_MAX_BODY_BYTES = env_int("PTXBOARD_MAX_BODY_BYTES", 2 << 20, at_least=1 << 20)
PTXBOARD_MAX_STAGE_BYTES = env_int("PTXBOARD_MAX_STAGE_BYTES", 16 << 20, at_least=1 << 20)
PTXBOARD_MAX_ARTIFACT_BYTES = env_int("PTXBOARD_MAX_ARTIFACT_BYTES", 64 << 20, at_least=1 << 20)

# Calls to model endpoints (leaderboard/endpoints). Hosts that may be private, plain http or on any
# port: names, host:port, or networks. Fernet keys for the endpoints' keys at rest, newest first.
PTXBOARD_ENDPOINT_HOSTS = env_list("PTXBOARD_ENDPOINT_HOSTS", [])
PTXBOARD_ENDPOINT_SECONDS = env_int("PTXBOARD_ENDPOINT_SECONDS", 1800, at_least=10)
PTXBOARD_SECRET_KEYS = env_list("PTXBOARD_SECRET_KEYS", [])

DEBUG = env_bool("PTXBOARD_DEBUG", False)
HTTPS = PTXBOARD_SITE_URL.startswith("https://")


def _secret_key() -> str:
    """PTXBOARD_SECRET_KEY, or one kept in var/secret_key where one machine runs everything."""
    if key := env_text("PTXBOARD_SECRET_KEY", ""):
        return key
    if not (DEBUG or PTXBOARD_EMBEDDED):
        raise ImproperlyConfigured(
            "PTXBOARD_SECRET_KEY is not set, but PTXBOARD_DATABASE_URL is; "
            "set it to 50 random characters that every process of the site shares"
        )
    path = PTXBOARD_VAR / "secret_key"
    try:
        with path.open("x", encoding="ascii") as file:
            path.chmod(0o600)
            file.write(secrets.token_urlsafe(50))
    except FileExistsError:
        pass
    return path.read_text(encoding="ascii").strip()


SECRET_KEY = _secret_key()
ALLOWED_HOSTS = env_list("PTXBOARD_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = [PTXBOARD_SITE_URL]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "leaderboard",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "leaderboard.views.privacy.private_pages",
]
ROOT_URLCONF = "webapp.urls"
WSGI_APPLICATION = "webapp.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": sqlite(PTXBOARD_VAR / "ptxboard.sqlite3")
    if PTXBOARD_EMBEDDED
    else postgresql(PTXBOARD_DATABASE_URL)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = PTXBOARD_VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# One machine serves static files as they lie; production runs collectstatic, which hashes names.
WHITENOISE_USE_FINDERS = PTXBOARD_EMBEDDED
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if PTXBOARD_EMBEDDED
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
STATIC_ROOT.mkdir(parents=True, exist_ok=True)

DATA_UPLOAD_MAX_MEMORY_SIZE = PTXBOARD_MAX_BODY_BYTES
FILE_UPLOAD_MAX_MEMORY_SIZE = PTXBOARD_MAX_BODY_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
DATA_UPLOAD_MAX_NUMBER_FILES = 256  # above the form's own limit, which says what it is

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = False
PTXBOARD_BEHIND_PROXY = env_bool("PTXBOARD_BEHIND_PROXY", False)
if PTXBOARD_BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = HTTPS

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["leaderboard.api.authentication.SubmitTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_PARSER_CLASSES": ["leaderboard.api.bodies.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["leaderboard.api.bodies.StrictJSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "leaderboard.api.bodies.OnlyOneForm",
    "DEFAULT_PAGINATION_CLASS": "leaderboard.api.pagination.NewestFirst",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "leaderboard.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "PTXBoard",
    "VERSION": "1",
    "DESCRIPTION": "Submit GPU kernels, read audited verdicts, boards and evidence.",
    "PREPROCESSING_HOOKS": ["leaderboard.api.schema.only_canonical"],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env_text("PTXBOARD_LOG_LEVEL", "INFO")},
    # At DEBUG these write prompts, headers and whole replies of model endpoints.
    "loggers": {
        name: {"level": "WARNING"}
        for name in ("openai", "anthropic", "httpx2", "httpcore2", "httpx", "httpcore")
    },
}
