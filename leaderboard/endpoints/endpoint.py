"""Where a model answers: API, base URL, model name, and the key that only a header sees."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import SecretStr

from leaderboard.endpoints.parameters import Api

_PATHS = ("/chat/completions", "/completions", "/v1/messages", "/messages", "/responses")
MAX_KEY_CHARS = 4096


class BadEndpoint(ValueError):
    """A field of an endpoint that cannot be; `field` names it, the message says what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`key` is masked in repr and str; an empty one sends no authorization at all.

    Raises BadEndpoint for an empty model and for a key that no header can carry.
    """

    api: Api
    base_url: str
    model: str
    key: SecretStr = field(default_factory=lambda: SecretStr(""))

    def __post_init__(self) -> None:
        if not self.model.strip() or len(self.model) > 200 or not self.model.isprintable():
            raise BadEndpoint("model", "the model's name needs 1 to 200 printable characters")
        key = self.key.get_secret_value()
        if len(key) > MAX_KEY_CHARS or not (key.isascii() and key.isprintable() and " " not in key):
            raise BadEndpoint(
                "key",
                f"the key has {len(key)} characters and must be printable ASCII without spaces, "
                f"at most {MAX_KEY_CHARS}; copy it again, without line ends",
            )

    @property
    def path(self) -> str:
        """Of the base URL, which may lead through somebody's own gateway: shown to nobody."""
        return urlsplit(self.root).path

    @property
    def root(self) -> str:
        """The base URL as the API's client wants it: without the call's path or a last slash."""
        root = self.base_url.strip().rstrip("/")
        for path in _PATHS:
            root = root.removesuffix(path)
        return root.removesuffix("/v1") if self.api is Api.MESSAGES else root
