"""`ptxboard worker`: serve a site. Its options and its imports load only when it is asked for."""

from argparse import ArgumentParser, Namespace
from typing import Any


def add_to(commands: Any) -> None:
    parser = commands.add_parser("worker", help="take work from a site")
    parser.set_defaults(run=run)


def add_options(parser: ArgumentParser) -> None:
    from evaluator.worker.main import add_arguments

    add_arguments(parser)


def run(options: Namespace) -> int:
    from evaluator.worker.main import main

    return main(options)
