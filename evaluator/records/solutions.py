"""FlashInfer solutions to candidates and back; what we do not run is refused in words.

A candidate with our own binding `c` has no name in FlashInfer's schema: its solution carries the
extra field `spec.ptxboard_binding`, and `spec.binding` stays away.
"""

import re
from collections.abc import Iterator

from pydantic import ValidationError

from evaluator.records.candidate import Binding, Candidate, Language, Source, check_source_path
from evaluator.records.flashinfer import (
    BuildSpec,
    Solution,
    SolutionBinding,
    SolutionLanguage,
    SourceFile,
)
from evaluator.records.validation import FieldProblem, InvalidRecord, field_problems, shortened
from evaluator.targets import TARGETS

OUR_BINDING_FIELD = "ptxboard_binding"
LANGUAGES = {
    SolutionLanguage.CUDA: Language.CUDA,
    SolutionLanguage.CPP: Language.CPP,
    SolutionLanguage.TRITON: Language.TRITON,
}
REFUSED_LANGUAGES = {
    SolutionLanguage.PYTHON: "host code in Python is not run; submit CUDA C++ or Triton",
    SolutionLanguage.TILELANG: "language 'tilelang' is not supported; submit CUDA C++",
}
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def solution_to_candidate(solution: Solution, target: str) -> Candidate:
    """The kernel of a solution as we build it for `target` (a slug).

    Raises InvalidRecord with everything in it that we do not run.
    """
    refused = tuple(_refusals(solution.spec, target))
    if refused:
        raise InvalidRecord(refused)
    spec = solution.spec
    value = {
        "problem": solution.definition,
        "target": target,
        "language": LANGUAGES[spec.language],
        "binding": our_binding(spec),
        "sources": [{"path": item.path, "content": item.content} for item in solution.sources],
        "entry_file": spec.entry_file,
        "entry_symbol": spec.entry_symbol,
    }
    try:
        return Candidate.model_validate(value)
    except ValidationError as error:
        raise InvalidRecord(field_problems(error, value)) from error


def candidate_to_solution(candidate: Candidate, *, name: str, author: str) -> Solution:
    """A solution that `solution_to_candidate` turns back into the same candidate."""
    ours = candidate.binding is Binding.C
    binding = {OUR_BINDING_FIELD: "c"} if ours else {"binding": SolutionBinding.TVM_FFI}
    spec = {
        "language": SolutionLanguage(candidate.language.value),
        "target_hardware": (candidate.target,),
        "entry_point": f"{candidate.entry_file}::{candidate.entry_symbol}",
        "destination_passing_style": True,
        **binding,
    }
    return Solution(
        name=name,
        definition=candidate.problem,
        author=author,
        spec=BuildSpec.model_validate(spec),
        sources=tuple(_source_file(source) for source in candidate.sources),
    )


def our_binding(spec: BuildSpec) -> Binding:
    """tvm-ffi where nothing is said, as FlashInfer has it; `c` where the extra field says so.

    A Triton solution has no binding there, and `c` here.
    """
    if spec.language is SolutionLanguage.TRITON and spec.binding is None:
        return Binding.C
    extra = spec.model_extra or {}
    return Binding.C if extra.get(OUR_BINDING_FIELD) == "c" else Binding.TVM_FFI


def _refusals(spec: BuildSpec, target: str) -> Iterator[FieldProblem]:
    if spec.language in REFUSED_LANGUAGES:
        yield _refusal("spec.language", spec.language.value, REFUSED_LANGUAGES[spec.language])
    if spec.binding is SolutionBinding.TORCH:
        rule = "binding 'torch' is not run; use 'tvm-ffi' with TVM_FFI_DLL_EXPORT_TYPED_FUNC"
        yield _refusal("spec.binding", "torch", rule)
    if not spec.destination_passing_style:
        rule = "outputs are allocated by the caller: destination_passing_style must be true"
        yield _refusal("spec.destination_passing_style", False, rule)
    if spec.dependencies:
        rule = "nothing is installed for a kernel; remove the dependencies"
        yield _refusal("spec.dependencies", list(spec.dependencies), rule)
    if not IDENTIFIER.fullmatch(spec.entry_symbol):
        rule = "the symbol of the entry point must be a C identifier of at most 128 characters"
        yield _refusal("spec.entry_point", spec.entry_point, rule)
    yield from _target_refusals(spec, target)


def _target_refusals(spec: BuildSpec, slug: str) -> Iterator[FieldProblem]:
    target = TARGETS.get(slug)
    if target is None:
        yield _refusal("target", slug, f"known targets: {', '.join(TARGETS)}")
        return
    if spec.language in REFUSED_LANGUAGES:
        return
    if spec.language.value not in target.languages:
        rule = f"target {slug!r} takes language {' or '.join(target.languages)}"
        yield _refusal("spec.language", spec.language.value, rule)
    elif our_binding(spec).value not in (allowed := target.bindings_of(spec.language.value)):
        rule = f"target {slug!r} takes binding {' or '.join(allowed)}"
        yield _refusal("spec.binding", our_binding(spec).value, rule)


def _refusal(pointer: str, seen: object, rule: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, seen=shortened(seen), rule=rule)


def _source_file(source: Source) -> SourceFile:
    return SourceFile(path=check_source_path(source.path), content=source.content)
