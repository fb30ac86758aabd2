"""Results on the worker's disk until the site has them: a site that is away loses nothing.

One folder per attempt; messages are numbered files, delivered in order and deleted one by one.
Artifacts of a message lie beside it and go first, so that a stage never names unknown bytes.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from evaluator.records.evaluation import Environment
from evaluator.records.evidence import Artifact
from evaluator.records.worker_api import Completion, Outcome
from evaluator.worker.client import SiteClient, SiteRefused, StaleFence

CUT_OFF = "the worker was killed in the midst of this attempt and has started anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """The messages of one attempt that the site has not acknowledged."""

    folder: Path
    attempt: str
    fence: str

    @classmethod
    def create(cls, root: Path, *, attempt: str, fence: str) -> "Outbox":
        folder = root / attempt
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(folder / "owner.json", json.dumps({"attempt": attempt, "fence": fence}))
        return cls(folder=folder, attempt=attempt, fence=fence)

    def put(self, path: str, body: str, artifacts: tuple[tuple[Artifact, bytes], ...] = ()) -> None:
        """Write a message down; it is safe from then on. `path` is below the worker API."""
        for artifact, data in artifacts:
            _write_whole(self.folder / artifact.sha256, data)
        number = len(list(self.folder.glob("*.message"))) + self._sent_count()
        message = {
            "path": path,
            "body": body,
            "artifacts": [artifact.sha256 for artifact, _ in artifacts],
        }
        _write_whole(self.folder / f"{number:06d}.message", json.dumps(message))

    def deliver(self, client: SiteClient) -> None:
        """Send what waits, oldest first.

        Raises SiteAway (what is left stays), StaleFence or SiteRefused (nothing more is wanted).
        """
        for file in sorted(self.folder.glob("*.message")):
            message = json.loads(file.read_text())
            for sha256 in message["artifacts"]:
                data = (self.folder / sha256).read_bytes()
                client.put_artifact(sha256, data, attempt=self.attempt, fence=self.fence)
            client.post(message["path"], message["body"])
            file.rename(file.with_suffix(".sent"))

    def clear(self) -> None:
        """Forget what waits; messages written from now on go out as usual."""
        for file in self.folder.glob("*.message"):
            file.rename(file.with_suffix(".sent"))

    @property
    def is_complete(self) -> bool:
        """Whether the attempt's completion was written down, sent or not."""
        files = (*self.folder.glob("*.message"), *self.folder.glob("*.sent"))
        return any(json.loads(file.read_text())["path"].endswith("/complete") for file in files)

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sent_count(self) -> int:
        return len(list(self.folder.glob("*.sent")))


def find_leftovers(root: Path) -> list[Outbox]:
    """What an earlier process of this worker did not bring to its end; look before the first claim.

    Its messages may be whole, or it was killed in the midst of the attempt.
    """
    known = [(path.parent, json.loads(path.read_text())) for path in root.glob("*/owner.json")]
    return [
        Outbox(folder=folder, attempt=owner["attempt"], fence=owner["fence"])
        for folder, owner in sorted(known, key=lambda one: one[0])
    ]


def deliver_leftover(outbox: Outbox, client: SiteClient, environment: Environment) -> str:
    """Send what was written down and forget it; says what became of it.

    An attempt that was cut off is reported as a fault of ours, so that its job goes on at once
    and not only when the lease ends. Raises SiteAway; nothing is lost then.
    """
    told = "delivered"
    if not outbox.is_complete:
        told = "reported as cut off"
        completion = Completion(
            fence=outbox.fence, outcome=Outcome.FAULTED, environment=environment, message=CUT_OFF
        )
        outbox.put(f"attempts/{outbox.attempt}/complete", completion.to_json())
    try:
        outbox.deliver(client)
    except (StaleFence, SiteRefused) as refusal:
        told = f"not wanted any more ({refusal})"
    outbox.discard()
    return f"{outbox.attempt}: {told}"


def _write_whole(path: Path, data: str | bytes) -> None:
    """All or nothing, also when the machine stops in between."""
    content = data.encode() if isinstance(data, str) else data
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
