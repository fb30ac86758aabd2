"""A FlashInfer-Trace solution as a draft; unknown fields in it are accepted."""

from typing import Any

from evaluator.records.flashinfer import InvalidRecord, Solution
from evaluator.records.solutions import solution_to_candidate
from evaluator.records.validation import FieldProblem, read_value
from leaderboard.models import Problem
from leaderboard.refusals import FieldError, InvalidSubmission
from leaderboard.services.drafts import Draft
from leaderboard.services.source_text import text_error


def draft_from_solution(value: Any, target: Any) -> Draft:
    """Raises InvalidSubmission with pointers below `solution`, all problems at once."""
    try:
        solution = read_value(Solution, value)
        _check_text(solution)
        candidate = solution_to_candidate(solution, target if isinstance(target, str) else "")
    except InvalidRecord as error:
        raise InvalidSubmission([_field_error(problem) for problem in error.problems]) from error
    if not Problem.objects.current().filter(name=candidate.problem).exists():
        names = list(Problem.objects.current().values_list("name", flat=True))
        message = f"{candidate.problem[:100]!r} is not known; allowed: {', '.join(names)}"
        pointer, seen = "solution.definition", candidate.problem[:100]
        raise InvalidSubmission(
            [FieldError(pointer=pointer, message=message, seen=seen, allowed=names)]
        )
    return Draft(
        problem=candidate.problem,
        target=candidate.target,
        language=candidate.language.value,
        binding=candidate.binding.value,
        sources=[(source.path, source.content) for source in candidate.sources],
        sources_pointer="solution.sources",
        name=solution.name,
        description=solution.description,
        entry_file=candidate.entry_file,
        entry_symbol=candidate.entry_symbol,
    )


def _check_text(solution: Solution) -> None:
    places = {"definition": solution.definition, "name": solution.name, "author": solution.author}
    problems = [
        FieldProblem(pointer=pointer, seen=ascii(text[:60]), rule=rule)
        for pointer, text in places.items()
        if (rule := text_error(text))
    ]
    if problems:
        raise InvalidRecord(problems)


def _field_error(problem: FieldProblem) -> FieldError:
    pointer = problem.pointer
    if pointer != "target":
        pointer = f"solution.{pointer}".rstrip(".")
    return FieldError(pointer=pointer, message=problem.rule, seen=problem.seen)
