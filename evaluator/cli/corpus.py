"""`ptxboard corpus`: run the cheats, mistakes and honest kernels of `tests/candidates`."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evaluator.bench import Bench
from evaluator.cli.evaluate import CACHE_FOLDER, why_not_here
from evaluator.cli.exits import EXIT_FAILED, EXIT_FAULT, EXIT_PASSED, UsageError
from evaluator.corpus.cases import Case, InvalidCase, load_cases
from evaluator.corpus.document import document, load_rows
from evaluator.corpus.outcomes import Finding, Outcome, finding_of
from evaluator.corpus.results import load, recorded
from evaluator.corpus.running import Lend, open_judge, run_cases
from evaluator.corpus.tally import Tally
from evaluator.device import Device
from evaluator.targets import TARGETS, Target

NAMES_SHOWN = 8
UNSETTLED = (Finding.BUILT, Finding.INCONCLUSIVE, Finding.FAULT)


def add_to(commands: Any) -> None:
    parser = commands.add_parser("corpus", help="try every known cheat on this machine")
    parser.add_argument("--target", choices=sorted(TARGETS), help="only cases of this target")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these cases")
    parser.add_argument("--missing", action="store_true", help="only cases without a result")
    parser.add_argument("--build-only", action="store_true", help="no case on a device")
    parser.add_argument("--seconds", type=seconds, help="start none after so long")
    parser.add_argument("--out", type=Path, metavar="FILE", help="add the results to this file")
    parser.add_argument("--no-cache", action="store_true", help="build again")
    parser.add_argument("--table", action="store_true", help="print docs/corpus.md, run nothing")
    parser.set_defaults(run=run)


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not number >= 0:
        raise ArgumentTypeError(f"{text} is below 0 seconds")
    return number


def run(options: Namespace) -> int:
    try:
        cases = load_cases(target=options.target, names=options.only)
        if options.table:
            print(document(cases, recorded(cases), load_rows()), end="")
            return EXIT_PASSED
    except InvalidCase as error:
        raise UsageError(str(error)) from None
    if options.missing:
        known = _known(cases, options.out)
        cases = tuple(case for case in cases if case.name not in known)
    return _run_and_tell(cases, options)


def _known(cases: Sequence[Case], out: Path | None) -> set[str]:
    """Names with a settled outcome on record or in the file that results go to."""
    outcomes = dict(recorded(cases))
    if out is not None:
        results = load(out)
        outcomes |= {case.name: seen for case in cases if (seen := results.of(case)) is not None}
    return {
        case.name
        for case in cases
        if case.name in outcomes
        and finding_of(case.expectation, outcomes[case.name]) not in UNSETTLED
    }


def _run_and_tell(cases: Sequence[Case], options: Namespace) -> int:
    bench = Bench.of_this_machine(cache=None if options.no_cache else CACHE_FOLDER)
    lend: Lend = (lambda _: None) if options.build_only else lender(bench)
    found: list[tuple[Case, Finding]] = []
    for case, outcome in run_cases(cases, bench, lend, seconds=options.seconds):
        finding = finding_of(case.expectation, outcome)
        found.append((case, finding))
        print(line(case, outcome, finding), flush=True)
        if options.out is not None and finding not in (Finding.BUILT, Finding.FAULT):
            load(options.out).with_outcome(case.name, outcome).save(options.out)
    left = [case.name for case in cases[len(found) :]]
    return _conclude(Tally.of([(case.expectation, one) for case, one in found]), found, left)


def lender(bench: Bench) -> Lend:
    """One judge for each target that this machine can run, opened when first needed."""

    @cache
    def lend(target: Target) -> Device | None:
        return None if why_not_here(target) else open_judge(target, bench)

    return lend


def line(case: Case, outcome: Outcome, finding: Finding) -> str:
    verdict = outcome.verdict.value if outcome.verdict else "-"
    stage = outcome.stage.value if outcome.stage else "-"
    words = (outcome.fault or outcome.message).splitlines()
    first = words[0] if words else ""
    return (
        f"{finding.value:<13} {case.name:<26} {verdict:<20} {stage:<11} "
        f"{outcome.seconds:6.1f} s  {first}"
    )


def _conclude(tally: Tally, found: Sequence[tuple[Case, Finding]], left: Sequence[str]) -> int:
    print("\n".join(["", *tally.lines()]))
    for finding in (Finding.FORGED, Finding.FALSE_ALARM, Finding.OTHER, Finding.FAULT):
        names = [case.name for case, one in found if one is finding]
        if names:
            print(f"{finding.value}: {', '.join(names)}")
    if left:
        more = f" and {len(left) - NAMES_SHOWN} more" if len(left) > NAMES_SHOWN else ""
        print(f"time is up; {len(left)} cases left out: {', '.join(left[:NAMES_SHOWN])}{more}")
    if not tally.is_clean:
        return EXIT_FAILED
    return EXIT_FAULT if tally.number(Finding.FAULT) else EXIT_PASSED
