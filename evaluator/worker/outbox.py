"""Results on the worker's disk until the site has them: a site that is away loses nothing.

One folder per attempt; messages are numbered files, delivered in order and deleted one by one.
Artifacts of a message lie beside it and go first, so that a stage never names unknown bytes.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from evaluator.records.evidence import Artifact
from evaluator.worker.client import SiteClient, SiteRefused, StaleFence


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

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sent_count(self) -> int:
        return len(list(self.folder.glob("*.sent")))


def deliver_leftovers(root: Path, client: SiteClient) -> list[str]:
    """Send what an earlier process of this worker wrote down; says what became of each attempt.

    Raises SiteAway when the site still does not answer; nothing is lost then.
    """
    told = []
    for owner in sorted(root.glob("*/owner.json")):
        known = json.loads(owner.read_text())
        outbox = Outbox(folder=owner.parent, attempt=known["attempt"], fence=known["fence"])
        try:
            outbox.deliver(client)
            told.append(f"{outbox.attempt}: delivered")
        except (StaleFence, SiteRefused) as refusal:
            told.append(f"{outbox.attempt}: not wanted any more ({refusal})")
        outbox.discard()
    return told


def _write_whole(path: Path, data: str | bytes) -> None:
    """All or nothing, also when the machine stops in between."""
    content = data.encode() if isinstance(data, str) else data
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
