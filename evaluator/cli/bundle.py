"""`ptxboard verify`: check a downloaded bundle or trajectory without the site."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from evaluator.bundle import NotABundle, verify_bundle
from evaluator.cli.exits import EXIT_FAILED, EXIT_PASSED, UsageError
from evaluator.trajectory_file import verify_trajectory


def add_to(commands: Any) -> None:
    parser = commands.add_parser("verify", help="check a downloaded bundle offline")
    parser.add_argument(
        "bundle", metavar="FILE", type=Path, help="a bundle (.zip), or a trajectory's JSON"
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    if options.bundle.suffix == ".json":
        return _run_trajectory(options.bundle)
    try:
        report = verify_bundle(options.bundle)
    except NotABundle as error:
        raise UsageError(str(error)) from error
    for fault in report.faults:
        print(fault)
    count = f"{report.file_count} files, {report.byte_count} bytes"
    if report.faults:
        print(f"{options.bundle.name}: {len(report.faults)} faults in {count}")
        return EXIT_FAILED
    print(f"{options.bundle.name}: {count}, every SHA-256 as in the manifest")
    if report.chain_digest is not None:
        print(f"chain of {report.stage_count} stages holds, last digest {report.chain_digest}")
    return EXIT_PASSED


def _run_trajectory(path: Path) -> int:
    try:
        report = verify_trajectory(path)
    except NotABundle as error:
        raise UsageError(str(error)) from error
    for fault in report.faults:
        print(fault)
    if report.faults:
        print(f"{path.name}: {len(report.faults)} faults in {report.turn_count} turns")
        return EXIT_FAILED
    print(f"{path.name}: the chain of {report.turn_count} turns holds")
    if report.last_digest is not None:
        print(f"last digest {report.last_digest}")
    return EXIT_PASSED
