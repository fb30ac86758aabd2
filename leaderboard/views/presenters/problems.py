"""A problem as its page shows it: axes, tensors, the reference, prototypes ready to copy."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.safestring import SafeString

from evaluator.problems.admissions import admission_of
from evaluator.problems.indices import drawing_by_input
from evaluator.problems.prototypes import Parameter, axis_sizes, parameters, prototype
from evaluator.records.admission import AdmissionReport
from evaluator.records.candidate import Binding, Language
from evaluator.records.problem import Problem
from evaluator.targets import TARGETS, Target
from leaderboard.models import Problem as ProblemRow
from leaderboard.views.presenters.grid import GROUPS
from leaderboard.views.presenters.sources import highlighted

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "int16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRow:
    name: str
    size: int
    kind: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRow:
    parameter: Parameter
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prototype:
    anchor: str
    title: str
    note: str
    language: Language
    binding: Binding
    text: str
    html: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The shortest time that arithmetic and traffic allow on a target; None without a peak."""

    target: Target
    compute_ns: float | None
    memory_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    axes: tuple[AxisRow, ...]
    tensors: tuple[TensorRow, ...]
    reference: SafeString
    prototypes: tuple[Prototype, ...]
    bounds: tuple[Bound, ...]
    intensity: float
    admission: AdmissionReport | None

    @property
    def wrong_answer_count(self) -> int:
        return len({row.mutant for row in self.admission.outcomes}) if self.admission else 0

    @property
    def has_meanings(self) -> bool:
        return any(row.description for row in self.tensors)

    @property
    def has_axis_meanings(self) -> bool:
        return any(row.description for row in self.axes)


def problem_groups(rows: Iterable[ProblemRow]) -> tuple[tuple[str, tuple[ProblemRow, ...]], ...]:
    known = list(rows)
    groups = (
        (title, tuple(row for row in known if row.development is development))
        for development, title in GROUPS
    )
    return tuple(pair for pair in groups if pair[1])


def problem_view(problem: Problem) -> ProblemView:
    specs = {**problem.definition.inputs, **problem.definition.outputs}
    drawn = drawing_by_input(problem)
    return ProblemView(
        axes=_axes(problem),
        tensors=tuple(
            TensorRow(
                parameter=item,
                description=_meaning(specs[item.name].description, drawn.get(item.name)),
            )
            for item in parameters(problem)
        ),
        reference=highlighted(problem.definition.reference.rstrip(), language="python"),
        prototypes=_prototypes(problem),
        bounds=tuple(_bound(problem, TARGETS[slug]) for slug in TARGETS if slug in problem.targets),
        intensity=problem.flop_count / problem.byte_count,
        admission=admission_of(problem),
    )


def _meaning(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)


def _axes(problem: Problem) -> tuple[AxisRow, ...]:
    sizes = axis_sizes(problem)
    return tuple(
        AxisRow(
            name=name,
            size=sizes[name],
            kind="constant" if axis.type == "const" else "set by the workload",
            description=axis.description or "",
        )
        for name, axis in problem.definition.axes.items()
    )


def _prototypes(problem: Problem) -> tuple[Prototype, ...]:
    wanted = []
    if any(TARGETS[slug].is_gpu for slug in problem.targets):
        wanted += [
            (
                Language.CUDA,
                Binding.C,
                "CUDA, binding c",
                "Plain pointers; builds in about a second.",
            ),
            (
                Language.CUDA,
                Binding.TVM_FFI,
                "CUDA, binding tvm-ffi",
                "FlashInfer-Trace's binding; existing solutions run unchanged.",
            ),
            (
                Language.TRITON,
                Binding.C,
                "Triton",
                "Called once when it is built; its kernels and launches are what is judged.",
            ),
        ]
    if "host" in problem.targets:
        wanted.append((Language.CPP, Binding.C, "C++, binding c", "For the development target."))
    return tuple(_prototype(problem, *one) for one in wanted)


def _prototype(
    problem: Problem, language: Language, binding: Binding, title: str, note: str
) -> Prototype:
    text = prototype(problem, binding, language)
    return Prototype(
        anchor=f"prototype-{language.value}-{binding.value}",
        title=title,
        note=note,
        language=language,
        binding=binding,
        text=text,
        html=highlighted(text, language="python" if language is Language.TRITON else "cpp"),
    )


def _bound(problem: Problem, target: Target) -> Bound:
    flops, bandwidth = target.peak_flops, target.memory_bandwidth
    return Bound(
        target=target,
        compute_ns=problem.flop_count / flops * 1e9 if flops else None,
        memory_ns=problem.byte_count / bandwidth * 1e9 if bandwidth else None,
    )
