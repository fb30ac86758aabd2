"""Compilation stage: one library for the target, and what the compiler and the linker tell of it.

In        candidate's sources; the generated entry unit checks the prototype of the entry point
Out       CompilationEvidence; artifacts `library`, `cubin` (the entry unit's), `log`
Verdicts  PASSED; COMPILE_ERROR: the compiler's word, a wrong prototype, too much memory, a
          library that readelf or cuobjdump cannot read;
          TIMEOUT; ENTRY_POINT_MISSING; BANNED_LIBRARY: a vendor library is linked or called, or
          device code is carried as data
Raises    EvaluatorFault: no compiler, no sandbox, a tool of ours is missing
Source    nvcc and g++; `readelf` for symbols; `cuobjdump` for the cubin; `ptxas -v` for resources

Builds are kept by the digest of every byte and flag (`BuildPlan.key`); failures too, except
timeouts and memory, which may be this machine's doing. What gets past: libraries loaded at run
time, and device code that is carried in disguise (timing knows launched kernels by their names).
A Triton candidate is traced first (`evaluator.triton`): its cubins and launches become the library.
"""

from dataclasses import dataclass
from pathlib import Path

from evaluator import build_cache
from evaluator.bench import Bench
from evaluator.build import (
    COMPILE_SECONDS,
    COMPILER_LIMITS,
    COMPILER_MEMORY_BYTES,
    LIBRARY,
    PTX,
    SOURCE_FOLDER,
    BuildPlan,
    lay_out,
    plan,
    unreadable_source,
)
from evaluator.compiler_log import (
    CleanLog,
    clean,
    kernel_resources,
    ran_out_of_memory,
    ran_out_of_time,
    without_temporaries,
)
from evaluator.device_code import foreign_device_code
from evaluator.diagnosis import first_error, remarks, units_to_locate, with_places
from evaluator.inspection import Inspection, Unreadable, inspect
from evaluator.records.candidate import Binding, Candidate, Language
from evaluator.records.evaluation import AnyStageResult, StageResult
from evaluator.records.evidence import (
    Artifact,
    CompilationEvidence,
    Ending,
    KernelResources,
    ProcessReport,
)
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.sandbox import OutputTooLarge, read_output
from evaluator.symbols import looked_up, why_missing
from evaluator.targets import Target
from evaluator.triton.building import Prepared, prepare
from evaluator.work import Work

LIBRARY_BYTES = 16 << 20
PTX_BYTES = 32 << 20
MOST_UNITS_LOCATED = 2
SYMBOLS_LISTED = 200
CACHED_VERDICTS = frozenset(
    {
        Verdict.PASSED,
        Verdict.COMPILE_ERROR,
        Verdict.ENTRY_POINT_MISSING,
        Verdict.BANNED_LIBRARY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What came out of the compiler; `inspection` only where there is a library.

    prepared  what tracing gave, of a Triton candidate
    """

    report: ProcessReport
    log: CleanLog
    library: bytes | None
    inspection: Inspection | None
    prepared: Prepared | None = None


def run(work: Work, bench: Bench) -> AnyStageResult:
    unreadable = unreadable_source(work.candidate)
    if unreadable:
        verdict = Verdict.COMPILE_ERROR
        return StageResult(stage=Stage.COMPILATION, verdict=verdict, message=unreadable)
    build_plan = plan(work, bench.toolchain)
    key = build_plan.key(work)
    if bench.cache is not None:
        cached = build_cache.load(bench.cache, key, work)
        if cached is not None and isinstance(cached.evidence, CompilationEvidence):
            seen = cached.evidence.model_copy(update={"cache_hit": True})
            return cached.model_copy(update={"evidence": seen})
    build = _build(work, build_plan, bench)
    evidence, artifacts = _evidence(work, build_plan, build, key)
    result = judge(evidence, target=work.target, binding=work.candidate.binding)
    result = result.model_copy(update={"artifacts": artifacts})
    if bench.cache is not None and _is_repeatable(result):
        build_cache.save(bench.cache, key, result, work)
    return result


def judge(
    evidence: CompilationEvidence, *, target: Target, binding: Binding
) -> StageResult[CompilationEvidence]:
    verdict, message = _decide(evidence, target, binding)
    return StageResult(stage=Stage.COMPILATION, verdict=verdict, message=message, evidence=evidence)


def _decide(evidence: CompilationEvidence, target: Target, binding: Binding) -> tuple[Verdict, str]:
    process = evidence.process
    out_of_time = process.exit_code != 0 and ran_out_of_time(evidence.log)
    if process.ending is Ending.TIMED_OUT or out_of_time:
        return Verdict.TIMEOUT, f"the compiler was still running at its limit, {COMPILE_SECONDS} s"
    if process.ending is not Ending.FINISHED or process.exit_code != 0:
        return Verdict.COMPILE_ERROR, _why_failed(evidence, target)
    if evidence.library is None and process.detail:
        return Verdict.COMPILE_ERROR, process.detail
    if evidence.library is None:
        raise EvaluatorFault("the compiler ended with 0 but left no library; see its log")
    if evidence.banned_symbols or evidence.banned_libraries:
        names = (*evidence.banned_libraries, *evidence.banned_symbols)
        return Verdict.BANNED_LIBRARY, f"the library calls or links {', '.join(names[:3])}"
    if evidence.foreign_device_code:
        return Verdict.BANNED_LIBRARY, _foreign_text(evidence.foreign_device_code)
    if evidence.unresolved_symbols:
        return Verdict.COMPILE_ERROR, _unresolved_text(evidence.unresolved_symbols)
    if looked_up(evidence.entry_symbol, binding) not in evidence.exported_symbols:
        missing = why_missing(evidence.entry_symbol, binding, evidence.exported_symbols)
        return Verdict.ENTRY_POINT_MISSING, missing
    return Verdict.PASSED, _summary(evidence)


def _foreign_text(found: tuple[str, ...]) -> str:
    return (
        f"the library carries device code as data ({', '.join(found)}); "
        "only kernels that are compiled here can be looked at, so only they may run"
    )


def _unresolved_text(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    listed = ", ".join(names[:3])
    return f"undefined symbol {listed}{more}: used, but defined in no file of the submission"


def _why_failed(evidence: CompilationEvidence, target: Target) -> str:
    if evidence.process.ending is Ending.OUT_OF_MEMORY or ran_out_of_memory(evidence.log):
        return f"the compiler ran out of memory, limit {COMPILER_MEMORY_BYTES >> 30} GiB a process"
    line = first_error(evidence.log)
    if not line:
        end = evidence.process.detail or f"exit code {evidence.process.exit_code}"
        line = f"the compiler failed: {end}"
    return f"{line} (built for {_built_for(target)})"


def _built_for(target: Target) -> str:
    return target.gencode.split("code=")[-1] if target.gencode else "this processor"


def _summary(evidence: CompilationEvidence) -> str:
    seconds = evidence.process.duration_ns / 1e9
    spilling = [kernel for kernel in evidence.kernels if kernel.spill_store_bytes]
    parts = [f"built in {seconds:.1f} s"]
    if evidence.kernels:
        registers = max(kernel.registers for kernel in evidence.kernels)
        count = len(evidence.kernels)
        parts.append(f"{count} kernel{'s' * (count > 1)}, at most {registers} registers")
    if spilling:
        parts.append(f"{len(spilling)} of them spill")
    noted = remarks(evidence.log)
    more = f" (and {len(noted) - 1} more remarks in the log)" if len(noted) > 1 else ""
    return ", ".join(parts) + (f"; {noted[0]}{more}" if noted else "")


def _is_repeatable(result: StageResult[CompilationEvidence]) -> bool:
    evidence = result.evidence
    assert evidence is not None
    healthy = evidence.process.ending is Ending.FINISHED and not ran_out_of_memory(evidence.log)
    return healthy and result.verdict in CACHED_VERDICTS


def _build(work: Work, build_plan: BuildPlan, bench: Bench) -> Build:
    if work.candidate.language is not Language.TRITON:
        return _compiled(work, build_plan, bench)
    prepared = prepare(work, build_plan, bench)
    if prepared.plan is not None:
        return _compiled(work, prepared.plan, bench, prepared)
    log = _cleaned(prepared.report, prepared.report.output_tail, build_plan, bench, Path("/build"))
    report = prepared.report.model_copy(update={"output_tail": ""})
    return Build(report=report, log=log, library=None, inspection=None, prepared=prepared)


def _compiled(
    work: Work, build_plan: BuildPlan, bench: Bench, prepared: Prepared | None = None
) -> Build:
    with bench.sandbox.scratch() as workspace:
        lay_out(work, build_plan, workspace)
        for name, data in (prepared.files if prepared else {}).items():
            (workspace / name).write_bytes(data)
        report = bench.sandbox.run(
            build_plan.command(),
            workspace=workspace,
            cwd=SOURCE_FOLDER,
            read_only=build_plan.mounts,
            limits=COMPILER_LIMITS,
            timeout_seconds=COMPILE_SECONDS,
        )
        output = _with_places(report.output_tail, build_plan, bench, workspace)
        traced = prepared.report.output_tail if prepared else ""
        log = _cleaned(report, traced + output, build_plan, bench, workspace)
        library, detail = _library(report, workspace)
        inspection = None
        try:
            inspection = inspect(work.target, bench, workspace, log.text) if library else None
        except Unreadable as error:
            library, detail = None, str(error)
    told = {
        "command": build_plan.shown_command(),
        "output_tail": "",
        "detail": detail,
        "duration_ns": report.duration_ns + (prepared.report.duration_ns if prepared else 0),
    }
    return Build(
        report=report.model_copy(update=told),
        log=log,
        library=library,
        inspection=inspection,
        prepared=prepared,
    )


def _cleaned(
    report: ProcessReport, output: str, build_plan: BuildPlan, bench: Bench, workspace: Path
) -> CleanLog:
    return clean(
        output,
        already_truncated=report.output_truncated,
        folders=build_plan.mounts,
        workspace=bench.sandbox.inside(workspace),
    )


def _with_places(output: str, build_plan: BuildPlan, bench: Bench, workspace: Path) -> str:
    """ptxas names lines of a PTX file that is gone: make it once more and name the author's."""
    output = without_temporaries(output)
    for stem in units_to_locate(output)[:MOST_UNITS_LOCATED]:
        unit = next((name for name in build_plan.units if Path(name).stem == stem), None)
        if unit is None:
            continue
        bench.sandbox.run(
            build_plan.ptx_command(unit),
            workspace=workspace,
            cwd=SOURCE_FOLDER,
            read_only=build_plan.mounts,
            limits=COMPILER_LIMITS,
            timeout_seconds=COMPILE_SECONDS,
        )
        try:
            ptx = read_output(workspace, PTX, limit_bytes=PTX_BYTES) or b""
        except OutputTooLarge:
            continue
        output = with_places(output, stem, ptx.decode("utf-8", errors="replace"))
    return output


def _library(report: ProcessReport, workspace: Path) -> tuple[bytes | None, str]:
    """The library, or why there is none."""
    if report.exit_code != 0:
        return None, report.detail
    try:
        return read_output(workspace, LIBRARY, limit_bytes=LIBRARY_BYTES), report.detail
    except OutputTooLarge as error:
        return None, f"the library is too large: {error}"


def _evidence(
    work: Work, build_plan: BuildPlan, build: Build, key: str
) -> tuple[CompilationEvidence, tuple[Artifact, ...]]:
    artifacts = [work.store("log", build.log.text.encode())] if build.log.text else []
    if build.prepared and build.prepared.plan:
        artifacts.append(work.store("launcher", build.prepared.plan.entry_text.encode()))
    library = work.store("library", build.library) if build.library else None
    inspection = build.inspection or Inspection()
    cubins = [work.store("cubin", data) for data in inspection.cubins]
    artifacts += [library] if library else []
    artifacts += cubins
    evidence = CompilationEvidence(
        process=build.report,
        compiler_version=build_plan.compiler_version,
        log=build.log.text,
        log_truncated=build.log.truncated,
        log_byte_count=build.log.byte_count,
        cache_key=key,
        cache_hit=False,
        kernels=_named(_kernels(build), inspection),
        entry_symbol=work.candidate.entry_symbol,
        exported_symbols=_listed(work.candidate, inspection),
        needed_libraries=inspection.symbols.needed,
        banned_symbols=inspection.symbols.banned_symbols[:SYMBOLS_LISTED],
        banned_libraries=inspection.symbols.banned_libraries,
        unresolved_symbols=_unresolved(inspection),
        foreign_device_code=foreign_device_code(build.library or b""),
        library=library,
        cubin=cubins[0] if cubins else None,
        launches=build.prepared.launches if build.prepared else (),
    )
    return evidence, tuple(artifacts)


def _kernels(build: Build) -> tuple[KernelResources, ...]:
    kernels = kernel_resources(build.log.text)
    return build.prepared.with_cubins(kernels) if build.prepared else kernels


def _listed(candidate: Candidate, inspection: Inspection) -> tuple[str, ...]:
    """The entry point first, then plain C names: a C++ header may export thousands."""
    wanted = looked_up(candidate.entry_symbol, candidate.binding)
    exported = sorted(
        inspection.symbols.exported,
        key=lambda name: (name != wanted, name.startswith("_Z"), name),
    )
    return tuple(exported[:SYMBOLS_LISTED])


def _unresolved(inspection: Inspection) -> tuple[str, ...]:
    names = inspection.symbols.unresolved[:SYMBOLS_LISTED]
    return tuple(inspection.demangled.get(name, name) for name in names)


def _named(
    kernels: tuple[KernelResources, ...], inspection: Inspection
) -> tuple[KernelResources, ...]:
    """With the names that authors wrote where the demangler knew them."""
    return tuple(
        kernel.model_copy(update={"name": inspection.demangled.get(kernel.name, kernel.name)})
        for kernel in kernels
    )
