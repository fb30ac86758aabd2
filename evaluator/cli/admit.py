"""`ptxboard admit`: prove that wrong answers fail on a problem, before anyone is judged by it."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from evaluator.cli.exits import EXIT_FAILED, EXIT_PASSED, UsageError
from evaluator.cli.tables import table
from evaluator.problems import find_problem, load_problems
from evaluator.problems.admissions import FOLDER, store
from evaluator.records.admission import ONE_IS_ENOUGH, AdmissionReport, MutantOutcome
from evaluator.records.problem import Problem

HEADER = ("WRONG ANSWER", "OUTPUT", "RESULT", "BAD", "OF", "SHARE", "MARGIN")

ONE_SLIP = (
    f"{', '.join(ONE_IS_ENOUGH)}: one slip that changes every output; one that fails is enough"
)


def add_to(commands: Any) -> None:
    parser = commands.add_parser("admit", help="check that a problem tells right from wrong")
    parser.add_argument("problems", metavar="PROBLEM", nargs="*")
    parser.add_argument("--all", action="store_true", help="every problem of the set")
    parser.add_argument("--device", default=None, help="torch device: cuda, or cpu (default: best)")
    parser.add_argument("--json", action="store_true", help="print each report as a line of JSON")
    parser.add_argument(
        "--write",
        nargs="?",
        const=FOLDER,
        type=Path,
        metavar="FOLDER",
        help="keep each report as FOLDER/PROBLEM.json (default: with the problem set)",
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    problems = _chosen(options)
    import torch

    from evaluator.admission import admit

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    all_admitted = True
    for problem in problems:
        report = admit(problem, device)
        all_admitted &= report.admitted
        if options.write:
            store(report, options.write)
        print(_json(report) if options.json else _text(report), flush=True)
    return EXIT_PASSED if all_admitted else EXIT_FAILED


def _chosen(options: Namespace) -> list[Problem]:
    if options.all:
        return list(load_problems().values())
    if not options.problems:
        raise UsageError("name a problem, or --all; `ptxboard problems` lists them")
    try:
        return [find_problem(name) for name in options.problems]
    except KeyError as error:
        raise UsageError(error.args[0]) from None


def _json(report: AdmissionReport) -> str:
    return json.dumps({"admitted": report.admitted, **report.model_dump(mode="json")})


def _text(report: AdmissionReport) -> str:
    """MARGIN: how many times larger atol would have to be for the wrong answer to pass."""
    lines = [
        table(HEADER, [_row(outcome) for outcome in report.outcomes]),
        ONE_SLIP,
        *(f"not tried: {line}" for line in report.not_tried),
        *(f"refused because: {line}" for line in report.reasons),
        *(f"caveat: {line}" for line in report.caveats),
        f"{report.problem}: {'admitted' if report.admitted else 'refused'} ({report.device})",
    ]
    return "\n".join(lines)


def _row(outcome: MutantOutcome) -> tuple[str, ...]:
    return (
        outcome.mutant,
        outcome.output,
        "PASSES" if outcome.passes else "fails",
        str(outcome.bad_count),
        str(outcome.element_count),
        f"{outcome.bad_fraction:.3%}",
        "no atol would do" if outcome.margin is None else f"{outcome.margin:.3g}",
    )
