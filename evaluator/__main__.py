"""`ptxboard`: evaluate a kernel without a site, look at problems and targets, serve a site.

Exit 0 passed, 1 the candidate failed, 2 wrong usage, 3 a fault of this machine or of ours.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from evaluator.cli import admit, bundle, catalogue, corpus, doctor, evaluate, pack, worker
from evaluator.cli.exits import EXIT_FAULT, EXIT_INTERRUPTED, EXIT_USAGE, UsageError
from evaluator.records.verdicts import EvaluatorFault

COMMANDS = (
    evaluate.add_to,
    catalogue.add_problems_to,
    catalogue.add_targets_to,
    doctor.add_to,
    admit.add_to,
    worker.add_to,
    bundle.add_to,
    pack.add_to,
    corpus.add_to,
)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(with_worker=arguments[:1] == ["worker"])
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except UsageError as error:
        print(f"ptxboard {options.command}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except EvaluatorFault as fault:
        print(f"ptxboard {options.command}: fault of this machine: {fault}", file=sys.stderr)
        return EXIT_FAULT
    except ModuleNotFoundError as missing:
        hint = "pip install 'ptxboard[worker]'"
        print(f"ptxboard {options.command}: {missing}; {hint}", file=sys.stderr)
        return EXIT_FAULT
    except KeyboardInterrupt:
        print(f"ptxboard {options.command}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAULT


def _parser(*, with_worker: bool) -> ArgumentParser:
    parser = ArgumentParser(prog="ptxboard", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add_to in COMMANDS:
        add_to(commands)
    if with_worker:
        worker.add_options(commands.choices["worker"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
