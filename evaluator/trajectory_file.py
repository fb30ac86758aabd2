"""A trajectory's export checked offline: the chain of its turns, and the texts that it covers.

`run` holds what the run was asked to do and the digest of that, the head of the chain. Each turn
has two links: `call_digest` covers {previous_digest, call}, `digest` covers {call_digest, outcome}.
The call's record holds the SHA-256 of the request's bytes and digests of reply, answer, reasoning.

What gets past: an export that was made anew as a whole. The last digest is told, so that it can be
compared with the page of the last turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.bundle import NotABundle
from evaluator.records.base import InvalidJson, digest_of, sha256_hex, strict_loads

FORMAT = "ptxboard.trajectory/1"
MOST_BYTES = 1 << 30
TEXTS = ("reply", "answer", "reasoning")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryReport:
    """`last_digest` is None where no turn is closed."""

    turn_count: int
    last_digest: str | None
    faults: tuple[str, ...]


def verify_trajectory(path: Path) -> TrajectoryReport:
    """Raises NotABundle where the file is no export of a trajectory."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise NotABundle(
                f"{path.name} is larger than {MOST_BYTES} bytes, the most that is read"
            )
        value = strict_loads(path.read_bytes())
    except (OSError, InvalidJson) as error:
        raise NotABundle(f"{path.name}: {error}") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise NotABundle(f"{path.name}: not in the format {FORMAT}, which the site exports")
    try:
        return _report(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise NotABundle(f"{path.name}: a part is missing or of another kind: {error}") from error


def _report(value: dict[str, Any]) -> TrajectoryReport:
    settings = {name: part for name, part in value["run"].items() if name != "digest"}
    previous, faults = value["run"]["digest"], []
    if digest_of(settings) != previous:
        faults.append(f"run: says digest {previous}, its settings give {digest_of(settings)}")
    last = None
    for place, turn in enumerate(value["turns"], 1):
        faults += [f"turn {place}: {fault}" for fault in _faults(turn, previous)]
        previous = turn["digest"] or turn["call_digest"]
        last = turn["digest"] or last
    return TrajectoryReport(turn_count=len(value["turns"]), last_digest=last, faults=tuple(faults))


def _faults(turn: dict[str, Any], previous: str) -> Iterator[str]:
    """`previous` is the link before; an open turn has no second link."""
    if turn["previous_digest"] != previous:
        yield f"follows {turn['previous_digest']}, the link before is {previous}"
    expected = {
        "call_digest": digest_of({"previous": turn["previous_digest"], "record": turn["call"]}),
        "digest": digest_of({"previous": turn["call_digest"], "record": turn["outcome"]}),
    }
    for name, digest in expected.items():
        if turn[name] and turn[name] != digest:
            yield f"says {name} {turn[name]}, its record gives {digest}"
    request = sha256_hex(turn["request"]["body"].encode())
    if turn["call"]["request_digest"] != request:
        yield f"its request has SHA-256 {request}, the record says {turn['call']['request_digest']}"
    for name in TEXTS:
        if turn["call"][f"{name}_digest"] != digest_of(turn[name]):
            yield f"its {name} is not the one that the record covers"
