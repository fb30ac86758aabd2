"""What the site refuses, in words: each says what was seen, what the limit is and what to do."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaderboard.models import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """`pointer` is a path such as `sources[1].path`; `allowed` a list of values or a limit."""

    pointer: str
    message: str
    seen: str = ""
    allowed: str | list[str] | int | None = None

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


class Refusal(Exception):
    """A request that cannot be granted; `status` is the HTTP status that it becomes."""

    status = 400
    title = "The request cannot be granted"

    def __init__(
        self, detail: str, *, errors: Sequence[FieldError] = (), extra: dict[str, Any] | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.extra = extra or {}

    @property
    def slug(self) -> str:
        """The class name in words: `StaleFence` is `stale-fence`."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class InvalidSubmission(Refusal):
    title = "The submission has errors"

    def __init__(self, errors: Sequence[FieldError], *, too_large: bool = False) -> None:
        lines = "; ".join(f"{error.pointer or 'body'}: {error.message}" for error in errors)
        super().__init__(lines, errors=errors)
        if too_large:
            self.status = 413


class InvalidBody(Refusal):
    title = "The body cannot be read"


class InvalidFilter(Refusal):
    title = "The list cannot be filtered so"


class BodyTooLarge(Refusal):
    status = 413
    title = "The body is too large"


class LengthRequired(Refusal):
    status = 411
    title = "The body's length is missing"


class EncodingRefused(Refusal):
    status = 415
    title = "Compressed bodies are not accepted"


class DuplicateContent(Refusal):
    status = 409
    title = "The same kernel was submitted before"

    def __init__(self, submission: "Submission") -> None:
        self.submission = submission
        super().__init__(
            f"you submitted the same sources for {submission.problem.name} on "
            f"{submission.target} before, as {submission.id}; its result stands"
        )


class KeyReused(Refusal):
    status = 409
    title = "The Idempotency-Key was used with another body"


class QuotaReached(Refusal):
    status = 429
    title = "Too many submissions are in flight"

    def __init__(self, *, seen: int, limit: int, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            f"{seen} of your submissions are queued or running, at most {limit}; "
            f"wait for one to end or cancel one"
        )


class InvalidRun(InvalidSubmission):
    title = "The model run has errors"


class TooManyRuns(Refusal):
    status = 429
    title = "Too many model runs are open"

    def __init__(self, *, seen: int, asked: int, limit: int) -> None:
        super().__init__(
            f"{seen} of your model runs are open and {asked} more were asked for, at most {limit} "
            "at once; wait for one to end or cancel one"
        )


class RunState(Refusal):
    status = 409
    title = "The run's state does not permit this"


class TooManySignIns(Refusal):
    status = 429
    title = "Too many failed sign-ins"

    def __init__(self, *, failures: int, minutes: int, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds
        wait = max(1, round(retry_after_seconds / 60))
        super().__init__(
            f"{failures} sign-ins for this name failed from your address within {minutes} minutes, "
            f"which is the limit; try again in {wait} minute{'s' if wait > 1 else ''}"
        )


class NotAllowed(Refusal):
    status = 403
    title = "You may not do this"


class OutOfScope(Refusal):
    status = 403
    title = "The token does not serve this"


class NameTaken(Refusal):
    status = 403
    title = "The worker's name is taken"


class NotPossible(Refusal):
    status = 409
    title = "The submission's state does not permit this"


class StaleFence(Refusal):
    status = 409
    title = "The attempt is no longer yours"


class AttemptTaken(Refusal):
    status = 409
    title = "The attempt cannot be claimed"


class AttemptUnknown(Refusal):
    status = 404
    title = "There is no such attempt"


class StageRefused(Refusal):
    title = "The stage record is refused"


class StageConflict(Refusal):
    status = 409
    title = "The stage was recorded with another result"


class ArtifactMissing(Refusal):
    status = 422
    title = "An artifact was not uploaded"


class ArtifactMismatch(Refusal):
    status = 422
    title = "The artifact's digest differs"
