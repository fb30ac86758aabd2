"""`ptxboard doctor`: what this machine can do, and how to get what it lacks."""

import json
from argparse import Namespace
from dataclasses import asdict
from typing import Any

from evaluator.cli.exits import EXIT_FAULT, EXIT_PASSED
from evaluator.cli.tables import table
from evaluator.doctor import Ability, State, examine_machine


def add_to(commands: Any) -> None:
    parser = commands.add_parser("doctor", help="what this machine can do, and what it lacks")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    abilities = examine_machine()
    lacking = [ability for ability in abilities if ability.lacking]
    if options.json:
        print(json.dumps({"fit": not lacking, "abilities": [asdict(a) for a in abilities]}))
    else:
        print(table(("ABILITY", "STATE", "SEEN", "NEEDED FOR"), [_row(a) for a in abilities]))
        for ability in abilities:
            if ability.state is not State.OK:
                print(f"\n{ability.name}: {ability.fix}")
        print(f"\n{_conclusion(lacking)}")
    return EXIT_FAULT if lacking else EXIT_PASSED


def _row(ability: Ability) -> tuple[str, str, str, str]:
    return (ability.name, ability.state.value, ability.seen, ability.needed_for)


def _conclusion(lacking: list[Ability]) -> str:
    if not lacking:
        return "This machine can do its part."
    return "Missing here: " + ", ".join(ability.name for ability in lacking)
