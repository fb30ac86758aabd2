"""Policy stage: which headers really enter the build, as the compiler itself lists them.

In        candidate's sources, laid out as for the build; the build's own flags
Out       PolicyEvidence: headers counted, the author's and the banned ones named
Verdicts  PASSED; BANNED_LIBRARY: a vendor library's header enters a translation unit;
          COMPILE_ERROR: a torch header or a file of the system is asked for, or a source is
          no text;
          TIMEOUT: the preprocessor did not end
Raises    EvaluatorFault: no compiler, no sandbox
Source    GCC's SUNPRO_DEPENDENCIES (dependencies of every pass, appended, system headers too)

A missing ordinary header and a syntax error pass: compilation reports them. A vendor header that
this machine lacks is known from the compiler's own complaint, so machines with and without the
library agree, and `__has_include` convicts nobody. What gets past: a library's text pasted into
the author's own files under other names, and loading at run time; the exported and undefined
symbols (compilation) and the mapped files (correctness, timing) answer for those.
Triton sources are read by `evaluator.triton.checking`, with the same verdicts and
ENTRY_POINT_MISSING.
"""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.bench import Bench
from evaluator.build import (
    COMPILER_LIMITS,
    DEPENDENCIES,
    SOURCE_FOLDER,
    BuildPlan,
    lay_out,
    plan,
    unreadable_source,
)
from evaluator.compiler_log import clean
from evaluator.records.candidate import Language
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import Ending, PolicyEvidence, ProcessReport
from evaluator.records.verdicts import Stage, Verdict
from evaluator.sandbox import OutputTooLarge, read_output
from evaluator.triton import checking
from evaluator.work import Work

POLICY_SECONDS = 60.0
DEPENDENCY_BYTES = 32 << 20
HEADERS_NAMED = 20
TORCH_MESSAGE = "torch headers are not available; use the raw-pointer entry"
FOREIGN_MESSAGE = "only files of the submission, the toolkit and the compiler can be included"
MISSING = re.compile(r"fatal error: (\S+): No such file or directory")

CUDNN_PARTS = "graph|ops|cnn|adv|backend|version"
LIBRARIES: dict[str, re.Pattern[str]] = {
    name: re.compile(rf"(?:^|/)({pattern})$")
    for name, pattern in {
        "cuBLAS": r"cublas(?:_v2|_api|Lt|Xt|Mp)?\.h|cublasdx(?:/[\w/]+)?\.hpp",
        "cuDNN": rf"cudnn(?:_(?:{CUDNN_PARTS}))?(?:_v\d+)?\.h|cudnn_frontend(?:/\w+)*\.h(?:pp)?",
        "CUTLASS": r"cutlass/[\w./]+",
        "CuTe": r"cute/[\w/]+\.hpp",
        "Thrust": r"thrust/[\w./]+\.(?:h|cuh|inl)",
        "CUB": r"cub/[\w/]+\.cuh",
        "cuFFT": r"cufft(?:Xt|w)?\.h|cufftdx(?:/[\w/]+)?\.hpp",
        "cuSOLVER": r"cusolver(?:Dn|Sp|Mg|Rf|_common)\.h|cusolverdx(?:/[\w/]+)?\.hpp",
        "cuSPARSE": r"cusparse(?:Lt|_v2)?\.h",
        "cuTENSOR": r"cutensor(?:Mg)?\.h",
    }.items()
}
TORCH = re.compile(r"(?:^|/)((?:torch|ATen|c10)/[\w./]+\.(?:h|hpp|cuh))$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """What the compiler opened, and the header whose absence stopped it, if any."""

    opened: tuple[str, ...]
    missing: tuple[str, ...]


def run(work: Work, bench: Bench) -> StageResult[PolicyEvidence]:
    unreadable = unreadable_source(work.candidate)
    if unreadable:
        return StageResult(stage=Stage.POLICY, verdict=Verdict.COMPILE_ERROR, message=unreadable)
    if work.candidate.language is Language.TRITON:
        return checking.run(work, bench)
    build_plan = plan(work, bench.toolchain)
    with bench.sandbox.scratch() as workspace:
        lay_out(work, build_plan, workspace)
        reports = _preprocess(build_plan, bench, workspace)
        try:
            listing = read_output(workspace, DEPENDENCIES, limit_bytes=DEPENDENCY_BYTES) or b""
        except OutputTooLarge as error:
            message = f"too many headers to list: {error}"
            return StageResult(stage=Stage.POLICY, verdict=Verdict.COMPILE_ERROR, message=message)
        inside = bench.sandbox.inside(workspace)
    log = "".join(report.output_tail for report in reports)
    headers = Headers(
        opened=parse_dependencies(listing.decode("utf-8", errors="replace")),
        missing=tuple(MISSING.findall(log)),
    )
    allowed = work.problem.allowed_libraries
    own = {source.path for source in work.candidate.sources}
    cleaned = clean(log, already_truncated=False, folders=build_plan.mounts, workspace=inside)
    evidence = PolicyEvidence(
        command=(f"SUNPRO_DEPENDENCIES=../{DEPENDENCIES}", *build_plan.shown_dependency_command()),
        header_count=len(headers.opened),
        author_headers=_author_headers(headers.opened, work)[:HEADERS_NAMED],
        banned_headers=banned(headers, allowed)[:HEADERS_NAMED],
        unavailable_headers=(
            *(name for name in torch_headers(headers) if name not in own),
            *foreign_headers(headers.opened, (*build_plan.mounts, Path("/usr"), inside), inside),
        )[:HEADERS_NAMED],
        log=cleaned.text,
    )
    return judge(evidence, timed_out=any(r.ending is Ending.TIMED_OUT for r in reports))


def judge(evidence: PolicyEvidence, *, timed_out: bool = False) -> StageResult[PolicyEvidence]:
    verdict = Verdict.PASSED
    message = f"{evidence.header_count} headers, none of a banned library"
    if evidence.banned_headers:
        verdict = Verdict.BANNED_LIBRARY
        first = evidence.banned_headers[0]
        message = (
            f"{first} ({library_of(first)}) enters the translation unit; "
            "libraries that do the work are not allowed, write the kernel yourself"
        )
    elif evidence.unavailable_headers:
        verdict = Verdict.COMPILE_ERROR
        first = evidence.unavailable_headers[0]
        rule = TORCH_MESSAGE if TORCH.search(first) else FOREIGN_MESSAGE
        message = f"{rule} (seen: {first})"
    elif timed_out:
        verdict = Verdict.TIMEOUT
        message = f"preprocessing was still running after {POLICY_SECONDS:.0f} s, the limit"
    return StageResult(stage=Stage.POLICY, verdict=verdict, message=message, evidence=evidence)


def parse_dependencies(text: str) -> tuple[str, ...]:
    """The prerequisites of make rules, each once, in the order in which they were opened."""
    words = re.findall(r"(?:\\.|[^\s\\])+", text.replace("\\\n", " "))
    plain = (re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words)
    return tuple(dict.fromkeys(word for word in plain if not word.endswith(":")))


def banned(headers: Headers, allowed: Sequence[str]) -> tuple[str, ...]:
    """As the library spells them (`cublas_v2.h`), each once."""
    permitted = {name.casefold() for name in allowed}
    found: dict[str, None] = {}
    for header in (*headers.opened, *headers.missing):
        for library, pattern in LIBRARIES.items():
            match = pattern.search(header)
            if match and library.casefold() not in permitted:
                found[match.group(1)] = None
    return tuple(found)


def library_of(header: str) -> str:
    return next((name for name, pattern in LIBRARIES.items() if pattern.search(header)), "banned")


def foreign_headers(
    opened: Sequence[str], places: Sequence[Path], workspace: Path
) -> tuple[str, ...]:
    """Files opened outside of `places`: the sandbox has few, but /proc is there and reads empty."""
    source_folder = workspace / SOURCE_FOLDER
    paths = {header: Path(os.path.normpath(source_folder / header)) for header in opened}
    return tuple(
        header
        for header, path in paths.items()
        if not any(path.is_relative_to(place) for place in places)
    )


def torch_headers(headers: Headers) -> tuple[str, ...]:
    matches = (TORCH.search(header) for header in (*headers.opened, *headers.missing))
    return tuple(dict.fromkeys(match.group(1) for match in matches if match))


def _author_headers(opened: Sequence[str], work: Work) -> tuple[str, ...]:
    own = {source.path for source in work.candidate.sources}
    relative = (header.removeprefix("./") for header in opened)
    return tuple(header for header in relative if header in own)


def _preprocess(build_plan: BuildPlan, bench: Bench, workspace: Path) -> list[ProcessReport]:
    """Unit by unit, until one does not end well: the build would stop there too."""
    reports: list[ProcessReport] = []
    deadline = time.monotonic() + POLICY_SECONDS
    for unit in build_plan.units:
        report = bench.sandbox.run(
            build_plan.dependency_command(unit),
            workspace=workspace,
            cwd=SOURCE_FOLDER,
            read_only=build_plan.mounts,
            env={"SUNPRO_DEPENDENCIES": f"../{DEPENDENCIES}"},
            limits=COMPILER_LIMITS,
            timeout_seconds=max(1.0, deadline - time.monotonic()),
        )
        reports.append(report)
        if report.exit_code != 0:
            break
    return reports
