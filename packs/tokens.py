"""Token counts by a real tokenizer: Qwen's, whose vocabulary comes inside `dashscope`.

Needed only to refresh and to check the counts in `pack.toml`; the site and the agent read those.
"""

import base64
import importlib.util
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from packs.pack import MANIFEST, Pack

if TYPE_CHECKING:
    import tiktoken

TOKENIZER = "Qwen (dashscope's qwen.tiktoken, 151643 tokens)"
# How Qwen's published tokenizer splits text before its merges.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ROW = re.compile(r'^(file = "(?P<file>[^"]+)"\n(?:(?!\[).*\n)*?tokens = )\d+$', re.MULTILINE)


def count_tokens(text: str) -> int:
    """Raises ModuleNotFoundError where the tokenizer is not installed."""
    return len(_encoding().encode(text, disallowed_special=()))


def counted(pack: Pack) -> dict[str, int]:
    """Tokens of every file that a pack names, by the file's name in `pack.toml`."""
    return {one.file: count_tokens(one.text) for one in pack.files}


def write_counts(pack: Pack) -> int:
    """Puts the counts into `pack.toml`; returns how many of them were different."""
    counts = counted(pack)
    manifest = pack.folder / MANIFEST
    before = manifest.read_text(encoding="utf-8")
    after = ROW.sub(lambda row: f"{row[1]}{counts[row['file']]}", before)
    manifest.write_text(after, encoding="utf-8")
    return sum(one.token_count != counts[one.file] for one in pack.files)


@lru_cache(maxsize=1)
def _encoding() -> "tiktoken.Encoding":
    import tiktoken

    ranks = {
        base64.b64decode(token): int(rank)
        for token, rank in (line.split() for line in _vocabulary().read_bytes().splitlines())
    }
    return tiktoken.Encoding("qwen", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={})


def _vocabulary() -> Path:
    spec = importlib.util.find_spec("dashscope")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'dashscope'", name="dashscope")
    return Path(spec.origin).parent / "resources" / "qwen.tiktoken"
