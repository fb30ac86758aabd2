"""`ptxboard admit`: prove that wrong answers fail on a problem, before anyone is judged by it."""

from argparse import Namespace
from typing import Any

from evaluator.cli.exits import EXIT_FAILED, EXIT_PASSED, UsageError
from evaluator.cli.tables import table
from evaluator.problems import find_problem


def add_to(commands: Any) -> None:
    parser = commands.add_parser("admit", help="check that a problem tells right from wrong")
    parser.add_argument("problem", metavar="PROBLEM")
    parser.add_argument("--device", default=None, help="torch device: cuda, or cpu (default: best)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    try:
        problem = find_problem(options.problem)
    except KeyError as error:
        raise UsageError(error.args[0]) from None
    import torch

    from evaluator.admission import admit

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    report = admit(problem, device)
    if options.json:
        print(report.to_json())
        return EXIT_PASSED if report.admitted else EXIT_FAILED
    rows = [
        (
            outcome.mutant,
            outcome.output,
            "PASSES" if outcome.passes else "fails",
            f"{outcome.bad_fraction:.2%}",
        )
        for outcome in report.outcomes
    ]
    print(table(("WRONG ANSWER", "OUTPUT", "RESULT", "BAD"), rows))
    for line in (*report.reasons, *report.caveats):
        print(line)
    print(f"{problem.name}: {'admitted' if report.admitted else 'refused'} ({report.device})")
    return EXIT_PASSED if report.admitted else EXIT_FAILED
