"""`ptxboard problems` and `ptxboard targets`: what can be submitted for what."""

import json
from argparse import Namespace
from typing import Any

from evaluator.cli.exits import EXIT_PASSED
from evaluator.cli.tables import table
from evaluator.problems import load_problems
from evaluator.records.problem import Problem
from evaluator.targets import TARGETS, Target


def add_problems_to(commands: Any) -> None:
    parser = commands.add_parser("problems", help="list the problem set")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=list_problems)


def add_targets_to(commands: Any) -> None:
    parser = commands.add_parser("targets", help="list the targets")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=list_targets)


def list_problems(options: Namespace) -> int:
    problems = load_problems().values()
    if options.json:
        print(json.dumps([_problem_json(problem) for problem in problems], indent=1))
        return EXIT_PASSED
    rows = [
        (
            problem.name,
            f"{problem.flop_count / 1e9:.3g}",
            f"{problem.byte_count / 1e6:.3g}",
            problem.baseline.name,
            ", ".join(problem.targets),
            problem.title,
        )
        for problem in problems
    ]
    print(table(("PROBLEM", "GFLOP", "MB", "BASELINE", "TARGETS", "TITLE"), rows))
    return EXIT_PASSED


def list_targets(options: Namespace) -> int:
    if options.json:
        print(json.dumps([_target_json(target) for target in TARGETS.values()], indent=1))
        return EXIT_PASSED
    rows = [
        (
            target.slug,
            target.title,
            _built_as(target),
            ", ".join(target.languages),
            ", ".join(target.bindings),
            target.note,
        )
        for target in TARGETS.values()
    ]
    print(table(("TARGET", "TITLE", "BUILT AS", "LANGUAGES", "BINDINGS", "NOTE"), rows))
    return EXIT_PASSED


def _built_as(target: Target) -> str:
    return target.gencode.split("code=")[-1] if target.gencode else "g++ -march=native"


def _problem_json(problem: Problem) -> dict[str, object]:
    return {
        "name": problem.name,
        "title": problem.title,
        "family": problem.family.value,
        "development": problem.development,
        "flop_count": problem.flop_count,
        "byte_count": problem.byte_count,
        "baseline": problem.baseline.name,
        "targets": list(problem.targets),
        "digest": problem.digest,
    }


def _target_json(target: Target) -> dict[str, object]:
    return {
        "slug": target.slug,
        "title": target.title,
        "arch": target.arch.value,
        "gencode": target.gencode,
        "families": list(target.families),
        "languages": list(target.languages),
        "bindings": list(target.bindings),
        "runs_here": target.runs_here,
        "development": target.development,
        "note": target.note,
    }
