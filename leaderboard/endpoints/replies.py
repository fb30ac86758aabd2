"""One answer of a model, in one shape for every API."""

from evaluator.records.base import Record

MAX_TEXT_BYTES = 4 << 20  # of the answer, and of the reasoning: ten times a 128k-token answer
MAX_RAW_BYTES = 256 << 10


class Usage(Record):
    """Tokens of one call; None where the endpoint does not say.

    `prompt_tokens` counts cached ones, `completion_tokens` counts reasoning, as OpenAI has it.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class Reply(Record):
    """What one call brought. No field ever holds the key, even where the endpoint echoes it.

    text           the answer; "" where there is none (see `finish_reason` and `reasoning`)
    reasoning      thinking, by whichever name the endpoint sends it; "" where there is none
    finish_reason  "stop", "length", "content_filter", or the endpoint's own word; None if unsaid
    raw            the reply as JSON, assembled if it was streamed; at most MAX_RAW_BYTES of UTF-8
    sent           the body of the request, exactly as it went out
    model          the model's name as the endpoint gives it, request_id its id for support
    """

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage = Usage()
    raw: str = ""
    sent: str = ""
    model: str | None = None
    request_id: str | None = None
