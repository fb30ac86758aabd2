"""What is text and what is not: sources must be UTF-8 without NUL, and are never rewritten."""

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def text_error(text: str) -> str | None:
    """Why this string cannot be stored as text; None when it can."""
    if "\x00" in text:
        offset = text.index("\x00")
        if _looks_like_utf16(text):
            return f"file is UTF-16 (NUL at offset {offset}); save it as UTF-8 and send it again"
        return f"NUL character at offset {offset}; text has none"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"not valid Unicode: a lone surrogate at offset {error.start}"
    return None


def _looks_like_utf16(text: str) -> bool:
    """Every other character NUL, as UTF-16 of Latin text reads when taken for 8-bit text."""
    head = text[:200]
    return len(head) >= 8 and head.count("\x00") >= len(head) // 3


def decode_source(data: bytes) -> str:
    """The text of an uploaded file; raises ValueError that says where it stops being UTF-8."""
    if data.startswith(UTF16_MARKS):
        raise ValueError("file is UTF-16; save it as UTF-8 and send it again")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not UTF-8, offset {error.start}; save it as UTF-8 and send it again"
        ) from error
    if problem := text_error(text):
        raise ValueError(problem)
    return text


def storable(text: str) -> str:
    """A message that quotes a candidate's output: PostgreSQL's text knows no NUL."""
    return text.replace("\x00", "\ufffd")
