"""`ptxboard evaluate`: the whole pipeline on this machine, without a site."""

import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaluator.bench import Bench
from evaluator.cli.exits import EXIT_FAILED, EXIT_FAULT, EXIT_PASSED, UsageError
from evaluator.device import open_device
from evaluator.environment import describe_environment, gpu_facts
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Binding, Candidate, Language, Source
from evaluator.records.evaluation import AnyStageResult, EvaluationRecord
from evaluator.records.problem import Problem
from evaluator.records.summary import Summary, planned_stages, summarise
from evaluator.records.verdicts import Lane, Verdict
from evaluator.targets import Target, find_target
from evaluator.work import Work

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
CACHE_FOLDER = Path.home() / ".cache" / "ptxboard" / "builds"


def add_to(commands: Any) -> None:
    parser = commands.add_parser("evaluate", help="judge a kernel on this machine")
    parser.add_argument("sources", metavar="KERNEL", nargs="+", type=Path, help="source files")
    parser.add_argument("--problem", required=True, help="see 'ptxboard problems'")
    parser.add_argument("--target", required=True, help="see 'ptxboard targets'")
    parser.add_argument("--binding", default="c", help="c (default) or tvm-ffi")
    parser.add_argument("--entry", help="file with the entry point (default: the first one given)")
    parser.add_argument("--json", action="store_true", help="print the record, and nothing else")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep artifacts and record")
    parser.add_argument("--no-cache", action="store_true", help="build again")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    problem, target = _known_problem(options.problem), _known_target(options.target)
    candidate = _candidate(options, problem, target)
    cache = None if options.no_cache else CACHE_FOLDER
    bench = Bench.of_this_machine(cache=cache)
    with _folder(options.keep) as folder:
        work = Work(candidate=candidate, problem=problem, target=target, folder=folder)
        work = _show(work, bench, Lane.BUILD)
        lacking = why_not_here(target) if _summary(work).verdict is None else None
        if _summary(work).verdict is None and lacking is None:
            bench = replace(bench, device=open_device(target, bench))
            work = _show(work, bench, Lane.GPU)
        return _conclude(work, bench, lacking, options)


def _known_problem(name: str) -> Problem:
    try:
        return find_problem(name)
    except KeyError as error:
        raise UsageError(error.args[0]) from None


def _known_target(slug: str) -> Target:
    try:
        return find_target(slug)
    except KeyError as error:
        raise UsageError(error.args[0]) from None


def _candidate(options: Namespace, problem: Problem, target: Target) -> Candidate:
    if target.slug not in problem.targets:
        allowed = ", ".join(problem.targets)
        raise UsageError(f"problem {problem.name!r} is not for target {target.slug!r}; {allowed}")
    language = _language(options.sources, target)
    bindings = target.bindings_of(language)
    if options.binding not in bindings:
        allowed = ", ".join(bindings)
        raise UsageError(
            f"binding {options.binding!r} is not known on {target.slug}; allowed: {allowed}"
        )
    base = Path(os.path.commonpath([path.absolute().parent for path in options.sources]))
    sources = tuple(
        read_source(path, name=path.absolute().relative_to(base).as_posix())
        for path in options.sources
    )
    try:
        return Candidate(
            problem=problem.name,
            target=target.slug,
            language=language,
            binding=Binding(options.binding),
            sources=sources,
            entry_file=_entry_file(options.entry, base, sources),
        )
    except ValidationError as error:
        raise UsageError("; ".join(fault["msg"] for fault in error.errors())) from error


def _language(paths: Sequence[Path], target: Target) -> Language:
    """Triton where the first file is Python, else what the target takes first."""
    if paths[0].suffix != ".py":
        return Language(target.languages[0])
    if Language.TRITON.value not in target.languages:
        allowed = ", ".join(target.languages)
        raise UsageError(f"{paths[0].name}: {target.slug} takes no Triton; allowed: {allowed}")
    return Language.TRITON


def _entry_file(named: str | None, base: Path, sources: tuple[Source, ...]) -> str:
    """As given, or below the common folder; the first file where none is named."""
    if named is None:
        return sources[0].path
    path = Path(named).absolute()
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else named


def read_source(path: Path, *, name: str) -> Source:
    """A file as it will be hashed and compiled; raises UsageError if it is not UTF-8 text."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if data.startswith(UTF16_MARKS):
        raise UsageError(f"{path.name}: file is UTF-16; save it as UTF-8")
    try:
        return Source(path=name, content=data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}: not UTF-8, offset {error.start}") from error
    except ValidationError as error:
        raise UsageError(error.errors()[0]["msg"]) from error


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="ptxboard-work-") as folder:
        yield Path(folder)


def _show(work: Work, bench: Bench, lane: Lane) -> Work:
    """Run a lane, one line per stage on stderr."""
    for result in run_lane(work, bench, lane):
        work = work.with_result(result)
        print(progress_line(result), file=sys.stderr, flush=True)
    return work


def progress_line(result: AnyStageResult) -> str:
    seconds = 0.0
    if result.started_at and result.ended_at:
        seconds = (result.ended_at - result.started_at).total_seconds()
    first = result.message.splitlines()[0] if result.message else ""
    return f"{result.stage.value:<12} {result.verdict.value:<20} {seconds:6.1f} s  {first}"


def _summary(work: Work) -> Summary:
    return summarise(work.results, planned_stages(is_gpu=work.target.is_gpu))


def why_not_here(target: Target) -> str | None:
    """Why the stages that measure cannot run on this machine; None if they can."""
    if not target.is_gpu:
        return None
    model = target.slug.upper()
    if not target.runs_here:
        return f"the build is done; nobody runs {target.title} kernels with this project yet"
    name = gpu_facts()["device_name"]
    if name is None:
        return f"the build is done; the remaining stages need an {model}, this machine has no GPU"
    if model not in name.upper():
        return f"the build is done; the remaining stages need an {model}, this machine has {name}"
    return None


def _conclude(work: Work, bench: Bench, lacking: str | None, options: Namespace) -> int:
    summary = _summary(work)
    text = _record_json(work, bench, summary, lacking)
    if options.keep is not None:
        (options.keep / "record.json").write_text(text + "\n")
    if options.json:
        print(text)
    else:
        print(_verdict_text(summary, lacking))
    if summary.verdict is None:
        if options.json:
            print(lacking, file=sys.stderr)
        return EXIT_FAULT
    return EXIT_PASSED if summary.verdict is Verdict.PASSED else EXIT_FAILED


def _record_json(work: Work, bench: Bench, summary: Summary, lacking: str | None) -> str:
    """The record; without a verdict, what there is so far under another format name."""
    if summary.verdict is None:
        stages = [result.model_dump(mode="json") for result in work.results]
        unfinished = {"format": "ptxboard.unfinished/1", "message": lacking, "stages": stages}
        return json.dumps({**unfinished, "stages_not_reached": list(summary.not_reached)})
    device = bench.device
    environment = (
        device.environment()
        if device is not None
        else describe_environment(bench.toolchain, bench.sandbox)
    )
    return EvaluationRecord(
        candidate=work.candidate,
        problem_digest=work.problem.digest,
        environment=environment,
        stages=work.results,
        stages_not_reached=summary.not_reached,
        verdict=summary.verdict,
        message=summary.message,
        target_instructions=summary.target_instructions,
        score=summary.score,
    ).to_json()


def _verdict_text(summary: Summary, lacking: str | None) -> str:
    if summary.verdict is None:
        return f"BUILD PASSED: {lacking}"
    lines = [f"{summary.verdict.value}: {summary.message}"]
    if summary.not_reached and summary.verdict is not Verdict.PASSED:
        lines.append("not reached: " + ", ".join(stage.value for stage in summary.not_reached))
    seen = summary.target_instructions
    if seen is not None:
        tier = f", {seen.tier.value}" if seen.tier else ""
        share = f", work share {seen.work_share:.3f}" if seen.work_share is not None else ""
        lines.append(f"target instructions: {seen.status.value}{tier}{share} {seen.reason}".strip())
    if summary.score is not None:
        score = summary.score
        lines.append(
            f"latency {score.latency_ns / 1e3:.2f} us, baseline "
            f"{score.baseline_latency_ns / 1e3:.2f} us, speedup {score.speedup:.3f} "
            f"({score.speedup_low:.3f} to {score.speedup_high:.3f}), noise {score.noise:.1%}, "
            f"{score.sample_count} samples"
        )
    return "\n".join(lines)
