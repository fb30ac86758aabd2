"""Make an evidence file of one stage from an exported evaluation.

    python tests/evidence/from_bundle.py BUNDLE.zip STAGE OUT.json --what TEXT --candidate PATH

OUT.json has a header (what it is, device, driver, tools, command, date, candidate) and the stage's
evidence as it was recorded.
"""

import argparse
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

TOOLS = ("compiler", "compute_sanitizer", "cupti", "nsight_compute", "torch", "harness_version")


def evidence_file(record: dict[str, Any], stage: str, what: str, candidate: str) -> dict[str, Any]:
    (result,) = [one for one in record["stages"] if one["stage"] == stage]
    environment = record["environment"]
    return {
        "header": {
            "schema": "ptxboard.recorded/1",
            "what": what,
            "device": environment["device_name"],
            "driver": environment["driver"],
            "tools": {name: environment[name] for name in TOOLS if environment.get(name)},
            "command": result["evidence"].get("process", {}).get("command", []),
            "date": result["started_at"][:10],
            "candidate": candidate,
        },
        "evidence": result["evidence"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("stage")
    parser.add_argument("out")
    parser.add_argument("--what", required=True)
    parser.add_argument("--candidate", required=True, help="folder or file in this repository")
    options = parser.parse_args()
    with zipfile.ZipFile(options.bundle) as archive:
        record = json.loads(archive.read("record.json"))
    made = evidence_file(record, options.stage, options.what, options.candidate)
    Path(options.out).write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
