"""How a board is cited: one BibTeX entry that names board, state and address."""

import re
from datetime import datetime

_SPECIAL = re.compile(r"[&%$#_{}]")


def bibtex(*, key: str, title: str, url: str, updated_at: datetime | None, state: str = "") -> str:
    """`state` names what the board was made of, so that a reader can tell a newer one."""
    fields = {
        "title": f"{{{_escaped(title)}}}",
        "author": "{{PTXBoard}}",
        "howpublished": f"{{\\url{{{url}}}}}",
        "year": f"{{{updated_at.year}}}" if updated_at else "",
        "month": f"{{{updated_at.month}}}" if updated_at else "",
        "note": f"{{{_note(updated_at, state)}}}",
    }
    lines = ",\n".join(f"  {name} = {value}" for name, value in fields.items() if value)
    return f"@misc{{{re.sub(r'[^A-Za-z0-9:-]', '-', key)},\n{lines}\n}}"


def _note(updated_at: datetime | None, state: str) -> str:
    last = f"last change {updated_at:%Y-%m-%d}" if updated_at else "no row yet"
    return f"{last}, state {state}" if state else last


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", text)
