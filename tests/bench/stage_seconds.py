"""Seconds per evaluated candidate by stage, from recorded evaluations.

    python tests/bench/stage_seconds.py examples/recorded/*.zip

Reads the bundles that `manage.py export_evaluations` writes; each stage carries when it began and
ended on the worker, so nothing is run here.
"""

import json
import sys
import zipfile
from collections import defaultdict
from datetime import datetime
from statistics import median

BUILD = ("policy", "compilation", "sass")


def durations(bundles: list[str]) -> dict[str, list[float]]:
    """Stage name -> seconds of each candidate that reached it."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for bundle in bundles:
        with zipfile.ZipFile(bundle) as archive:
            for name in archive.namelist():
                if name.endswith("record.json"):
                    for stage in json.loads(archive.read(name))["stages"]:
                        seconds[stage["stage"]].append(_length(stage))
    return seconds


def _length(stage: dict) -> float:
    started, ended = (
        datetime.fromisoformat(stage[key].replace("Z", "+00:00"))
        for key in ("started_at", "ended_at")
    )
    return (ended - started).total_seconds()


def main() -> None:
    seconds = durations(sys.argv[1:])
    print("| stage | lane | candidates | median s | max s |\n| --- | --- | --- | --- | --- |")
    for stage, values in seconds.items():
        lane = "build" if stage in BUILD else "gpu"
        print(f"| {stage} | {lane} | {len(values)} | {median(values):.2f} | {max(values):.2f} |")


if __name__ == "__main__":
    main()
