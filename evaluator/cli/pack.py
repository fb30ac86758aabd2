"""`ptxboard pack`: read a knowledge pack as a model gets it, and check its digest and counts."""

import json
from argparse import ArgumentTypeError, Namespace
from typing import Any

from evaluator.cli.exits import EXIT_FAILED, EXIT_PASSED, UsageError
from evaluator.cli.tables import table
from evaluator.records.problem import Family
from evaluator.records.verdicts import EvaluatorFault
from packs.pack import PACKS, InvalidPack, Level, Pack, Part, find_pack

LEVELS = ", ".join(Level)
TOKENIZER_HINT = "pip install 'ptxboard[dev]'"


def add_to(commands: Any) -> None:
    parser = commands.add_parser("pack", help="knowledge packs: list, show, digest, count")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="the packs with version, tokens and digest")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=list_packs)
    show = actions.add_parser("show", help="the very text that enters a prompt")
    show.add_argument("pack", metavar="PACK", help=f"one of: {', '.join(PACKS)}")
    show.add_argument("--level", type=level, default=Level.CONTRACTS, help=f"one of: {LEVELS}")
    show.add_argument("--schedule", action="append", default=[], help="also this schedule")
    show.add_argument("--guidance", type=family, default=None, help="for a family of problems")
    show.set_defaults(run=show_pack)
    digest = actions.add_parser("digest", help="SHA-256 over every file of a pack")
    digest.add_argument("packs", metavar="PACK", nargs="*", help="all packs if none is named")
    digest.set_defaults(run=print_digests)
    count = actions.add_parser("count", help="count tokens, and compare with pack.toml")
    count.add_argument("pack", metavar="PACK")
    count.add_argument("--write", action="store_true", help="put the counts into pack.toml")
    count.set_defaults(run=count_pack)


def level(text: str) -> Level:
    """`contracts`, also as the ablation writes it: `+contracts`."""
    try:
        return Level(text.removeprefix("+"))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not one of: {LEVELS}") from None


def family(text: str) -> Family:
    try:
        return Family(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not one of: {', '.join(Family)}") from None


def list_packs(options: Namespace) -> int:
    packs = [_find(name) for name in PACKS]
    if options.json:
        print(json.dumps([_pack_json(pack) for pack in packs], indent=1))
        return EXIT_PASSED
    rows = [
        (
            pack.name,
            pack.version,
            ", ".join(pack.targets),
            *(str(pack.token_count(one)) for one in list(Level)[:-1]),
            ", ".join(schedule.slug for schedule in pack.schedules),
            pack.digest[:12],
        )
        for pack in packs
    ]
    levels = ("TOKENS: PARAMETERS", "+FUNCTIONS", "+CONTRACTS")
    print(table(("PACK", "VERSION", "TARGETS", *levels, "SCHEDULES", "DIGEST"), rows))
    return EXIT_PASSED


def show_pack(options: Namespace) -> int:
    """A schedule implies its level, so that `--schedule NAME` alone is enough."""
    pack = _find(options.pack)
    wanted = Level.SCHEDULE if options.schedule else options.level
    try:
        text = pack.text(wanted, schedules=options.schedule, guidance_for=options.guidance)
    except KeyError as error:
        raise UsageError(error.args[0]) from None
    print(text, end="")
    return EXIT_PASSED


def print_digests(options: Namespace) -> int:
    for name in options.packs or PACKS:
        pack = _find(name)
        print(f"{pack.digest}  {pack.name} {pack.version}")
    return EXIT_PASSED


def count_pack(options: Namespace) -> int:
    pack = _find(options.pack)
    try:
        from packs.tokens import counted, write_counts

        counts = counted(pack)
    except ModuleNotFoundError as missing:
        raise EvaluatorFault(f"no tokenizer: {missing}; {TOKENIZER_HINT}") from None
    rows = [
        (one.file, str(one.token_count), str(counts[one.file]), _remark(one, counts))
        for one in pack.files
    ]
    print(table(("FILE", "IN pack.toml", "COUNTED", ""), rows))
    stale = sum(one.token_count != counts[one.file] for one in pack.files)
    if options.write:
        for one in _sharing_with(pack):
            print(f"{one.name}: {write_counts(one)} counts written")
        return EXIT_PASSED
    print(f"{pack.name}: {stale} counts differ, {sum(counts.values())} tokens in all files")
    return EXIT_FAILED if stale else EXIT_PASSED


def _sharing_with(pack: Pack) -> list[Pack]:
    """The pack, and every other that has a file of it."""
    paths = {one.path for one in pack.files}
    packs = [_find(name) for name in PACKS]
    return [other for other in packs if paths & {one.path for one in other.files}]


def _remark(part: Part, counts: dict[str, int]) -> str:
    return "" if part.token_count == counts[part.file] else "differs"


def _find(name: str) -> Pack:
    try:
        return find_pack(name)
    except KeyError as error:
        raise UsageError(error.args[0]) from None
    except InvalidPack as broken:
        raise EvaluatorFault(str(broken)) from broken


def _pack_json(pack: Pack) -> dict[str, object]:
    return {
        **pack.facts(),
        "schedules": {schedule.slug: schedule.token_count for schedule in pack.schedules},
    }
