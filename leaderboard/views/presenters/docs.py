"""Documentation that is made from the code it is about, so that the two cannot drift apart."""

import ast
import re
from dataclasses import dataclass
from functools import cache

from django.conf import settings

from evaluator.records.verdicts import Stage
from evaluator.targets import TARGETS, Target
from leaderboard.templatetags.units import file_size, percent
from leaderboard.views.presenters.words import STAGES, TRUST, Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`where` is the module that holds it."""

    what: str
    value: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageNotes:
    """From the head of the stage's module: what goes in and out, and what gets past it."""

    stage: Stage
    name: str
    fields: tuple[tuple[str, str], ...]
    prose: str
    gets_past: str


# what, module, name in it, how it is said
LIMITS: tuple[tuple[str, str, str, str], ...] = (
    ("one source set", "evaluator.records.candidate", "MAX_SOURCE_BYTES", "bytes"),
    ("files of a submission", "evaluator.records.candidate", "MAX_SOURCE_FILES", "count"),
    ("preprocessing in the policy stage", "evaluator.stages.policy", "POLICY_SECONDS", "seconds"),
    ("compiling", "evaluator.build", "COMPILE_SECONDS", "seconds"),
    ("memory of the compiler", "evaluator.build", "COMPILER_MEMORY_BYTES", "bytes"),
    ("the built library", "evaluator.stages.compilation", "LIBRARY_BYTES", "bytes"),
    ("scratch files in the sandbox", "evaluator.sandbox", "TMP_BYTES", "bytes"),
    ("the sanitizer's run", "evaluator.judge.sanitizing", "SANITIZER_SECONDS", "seconds"),
    ("one call of a kernel", "evaluator.judge.judge", "CALL_SECONDS", "seconds"),
    ("profiling", "evaluator.judge.profiling", "PROFILE_SECONDS", "seconds"),
    (
        "trials of correctness, each with fresh inputs",
        "evaluator.judge.checking",
        "TRIALS",
        "count",
    ),
    ("guard band before and after each output", "evaluator.judge.arena", "GUARD_BYTES", "bytes"),
    ("trials of timing", "evaluator.agent.task", "TRIALS", "count"),
    (
        "measuring again before a time stays inconclusive",
        "evaluator.stages.timing",
        "ATTEMPTS",
        "count",
    ),
    ("feedback to a model, a turn", "evaluator.agent.feedback", "FEEDBACK_BYTES", "bytes"),
)


def limits() -> tuple[Limit, ...]:
    return tuple(
        Limit(what=what, value=_said(constant(module, name), kind), where=module)
        for what, module, name, kind in LIMITS
    )


def _said(value: float, kind: str) -> str:
    if kind == "bytes":
        return file_size(int(value))
    return f"{value:g} s" if kind == "seconds" else f"{value:g}"


def constant(module: str, name: str) -> float:
    """A number of a module, read from its text: modules of the judge need torch to be imported.

    Raises LookupError where the module holds no such number.
    """
    named = (
        node.value
        for node in _tree(module).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    )
    if (found := next(named, None)) is not None:
        return _number(found)
    raise LookupError(f"{module} has no {name}; leaderboard/views/presenters/docs.py names it")


def _number(node: ast.expr) -> float:
    """A literal, or one shifted or multiplied by another."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
        return int(_number(node.left)) << int(_number(node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _number(node.left) * _number(node.right)
    raise LookupError(f"{ast.unparse(node)} is no plain number")


@cache
def _tree(module: str) -> ast.Module:
    path = settings.BASE_DIR.joinpath(*module.split(".")).with_suffix(".py")
    return ast.parse(path.read_text())


@cache
def stage_notes() -> tuple[StageNotes, ...]:
    return tuple(_notes(stage) for stage in Stage)


def _notes(stage: Stage) -> StageNotes:
    """House style: a title, then `Name  text` lines with indented continuations, then prose."""
    text = ast.get_docstring(_tree(f"evaluator.stages.{stage.value}")) or ""
    _, head, *rest = text.split("\n\n")
    fields = re.findall(r"^(\w+) {2,}(.+(?:\n {2,}.+)*)", head, re.MULTILINE)
    prose = " ".join(" ".join(rest).split())
    before, _, past = prose.partition("What gets past: ")
    return StageNotes(
        stage=stage,
        name=STAGES[stage][0],
        fields=tuple((name, " ".join(said.split())) for name, said in fields),
        prose=(prose if not past else before).strip(),
        gets_past=past[:1].upper() + past[1:],
    )


def noise_limits() -> tuple[tuple[Target, str], ...]:
    return tuple((target, percent(target.noise_limit)) for target in TARGETS.values())


def trust_rules() -> tuple[Badge, ...]:
    return tuple(TRUST.values())
