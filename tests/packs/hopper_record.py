"""Makes the committed record of a run of packs/hopper/probes/run.sh: a header, then its lines.

usage: python -m tests.packs.hopper_record OUT.jsonl DATE     writes tests/packs/evidence/...
"""

import hashlib
import json
import re
import sys
from pathlib import Path

from packs.pack import ROOT

RECORD = Path(__file__).parent / "evidence" / "hopper_h200.jsonl"
COMMAND = "packs/hopper/probes/run.sh OUT.jsonl"
COMMENT = re.compile(r"//[^\n]*")


def code_digest(*folders: str) -> str:
    """SHA-256 over the code of the headers and programs, without comments and white space."""
    sha256 = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / "hopper" / folder).glob("*.cu*")):
            code = re.sub(r"\s+", "", COMMENT.sub("", path.read_text(encoding="utf-8")))
            sha256.update(f"{path.name}\0{code}\0".encode())
    return sha256.hexdigest()


def header(lines: list[dict[str, object]], date: str) -> dict[str, object]:
    device = next(line["detail"] for line in lines if line["probe"] == "device")
    return {
        "schema": "ptxboard.probes/1",
        "command": COMMAND,
        "date": date,
        "device": device,
        "templates_sha256": code_digest("templates"),
        "probes_sha256": code_digest("probes"),
    }


def main(source: str, date: str) -> None:
    text = Path(source).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(header(lines, date)) + "\n" + text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
