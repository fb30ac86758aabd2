"""The first two messages of a trajectory: who the model is and what it may use, and the task."""

from evaluator.agent.advice import ANSWER
from evaluator.agent.examples import TITLE, example
from evaluator.agent.messages import Message
from evaluator.agent.quoting import fenced
from evaluator.agent.requirements import FENCE_TAG, requirements
from evaluator.agent.task import goal_section, judging_section, problem_section, sizes_section
from evaluator.agent.variants import Variant
from evaluator.problems.prototypes import prototype
from evaluator.records.problem import Family, Problem
from evaluator.targets import Target
from packs.pack import Level, Pack

ENTRY_POINT = "run"
CRAFT = {
    "cuda": "CUDA C++ with inline PTX",
    "cpp": "C++",
    "triton": "Triton",
}
USE_FUNCTIONS = (
    "The wrapper functions below are compiled and checked by us. They are no library that you can "
    "include: copy what you use into your file, unchanged where you can."
)
NOT_CALLABLE = (
    "The material below is written for CUDA C++. Its functions cannot be called from Triton; what "
    "it says of the hardware holds for the code that Triton makes too."
)


def base_messages(
    *,
    problem: Problem,
    target: Target,
    language: str,
    binding: str,
    pack: Pack | None,
    level: Level | str,
    variant: Variant,
    guidance: bool,
    target_speedup: float,
    turns: int,
) -> tuple[Message, Message]:
    """(system, user); equal arguments give equal bytes.

    language  `cuda`, `cpp` or `triton`; binding  `c` or `tvm-ffi`, not looked at for Triton
    pack      None where the target has none; level, variant and guidance then say nothing
    guidance  whether the pack's advice for the problem's family is given

    Raises ValueError for a language that the target does not have, a binding that the language
    does not have, or a variant with schedules below level `schedule`; KeyError for a schedule
    that the pack does not have.
    """
    if language not in CRAFT:
        raise ValueError(f"language {language!r} is not known; known: {', '.join(CRAFT)}")
    if (language == "cpp") is target.is_gpu:
        raise ValueError(f"target {target.slug} takes no {language}")
    family = problem.family if guidance else None
    system = "\n".join(
        [
            _role(target, language),
            _answer_format(language),
            _requirements(target, language, binding),
            *_material(pack, language, Level(level), variant, family),
            _example(language, binding),
        ]
    )
    user = "\n".join(
        [
            problem_section(problem),
            sizes_section(problem),
            _prototype(problem, language, binding),
            judging_section(problem, target, language),
            goal_section(problem, target, target_speedup=target_speedup, turns=turns),
            f"{ANSWER}\n",
        ]
    )
    return Message(role="system", content=system), Message(role="user", content=user)


def _role(target: Target, language: str) -> str:
    built = f" ({target.gencode.split('code=')[-1]})" if target.gencode else ""
    own = (
        " You know the instructions that only this architecture has, and you use them for the work."
        if target.families
        else ""
    )
    return (
        f"# Role\n\nYou write kernels for {target.title}{built} in {CRAFT[language]}, from "
        f"scratch. They must be correct first, and then as fast as the hardware allows.{own}\n"
    )


def _answer_format(language: str) -> str:
    tag = FENCE_TAG[language]
    block = fenced("... the whole source file ...", tag)
    return "\n".join(
        [
            "# Form of an answer",
            "",
            "Explain briefly what you do, or changed, and why. Then give the whole source file in "
            "one fenced block:",
            "",
            block,
            "",
            f"What is built is the last complete fenced block that defines `{ENTRY_POINT}`. An "
            "answer that is cut off, or whose last block is not closed, is not built. Code in "
            "your reasoning is never taken.",
            "",
        ]
    )


def _requirements(target: Target, language: str, binding: str) -> str:
    items = requirements(target=target, language=language, binding=binding, entry_point=ENTRY_POINT)
    return "\n".join(["# Requirements", "", *(f"- {item}" for item in items), ""])


def _material(
    pack: Pack | None, language: str, level: Level, variant: Variant, family: Family | None
) -> list[str]:
    if pack is None:
        return []
    text = pack.text(level, schedules=variant.schedules, guidance_for=family)
    note = NOT_CALLABLE if language == "triton" else USE_FUNCTIONS
    note = f"{note}\n" if level.holds(Level.FUNCTIONS) else ""
    return [f"# Reference material\n\n{note}", text]


def _example(language: str, binding: str) -> str:
    code = fenced(example(language, binding), FENCE_TAG[language])
    return f"# Example of the form\n\n{TITLE}:\n\n{code}\n"


def _prototype(problem: Problem, language: str, binding: str) -> str:
    code = fenced(prototype(problem, binding, language), FENCE_TAG[language])
    return f"## Entry point\n\n{code}\n"
