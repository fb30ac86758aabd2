"""What a stage that did not pass has to say to the author, from its evidence."""

import re

from evaluator.agent.sections import Section
from evaluator.diagnosis import ERROR
from evaluator.records.evaluation import AnyStageResult
from evaluator.records.evidence import (
    CompilationEvidence,
    CorrectnessEvidence,
    CorrectnessTrial,
    Ending,
    OutputError,
    PolicyEvidence,
    ProcessReport,
    SanitizerEvidence,
    SanitizerFault,
    TimingEvidence,
)

LOG_SECTION_BYTES = 4500
OUTPUT_LINES = 25
AFTER_ERROR = 3
BACKTRACE = re.compile(r"=========\s+(?:Saved host backtrace|Host Frame:)")
AROUND_FAULT = 3


def fault_sections(result: AnyStageResult, source: str) -> list[Section]:
    """Details of a failed stage, the useful ones first; none where it left no evidence."""
    match result.evidence:
        case PolicyEvidence() as evidence:
            return _of_policy(evidence)
        case CompilationEvidence() as evidence:
            return [_compiler_log(evidence)] if evidence.log.strip() else []
        case SanitizerEvidence() as evidence:
            return _of_sanitizer(evidence, source)
        case CorrectnessEvidence() as evidence:
            return [*_wrong_outputs(evidence), *_process(evidence.process)]
        case TimingEvidence() as evidence:
            return _process(evidence.process)
    return []


def _of_policy(evidence: PolicyEvidence) -> list[Section]:
    names = (*evidence.banned_headers, *evidence.unavailable_headers)
    if not names:
        return []
    return [Section(title="Headers that may not be included", quote="\n".join(names))]


def _compiler_log(evidence: CompilationEvidence) -> Section:
    errors, rest = sort_log(evidence.log)
    lines = [f"{len(errors)} lines with errors first, {len(rest)} others after them."]
    if evidence.log_truncated:
        lines.append(f"The whole log had {evidence.log_byte_count} bytes and was cut before.")
    return Section(
        title="Compiler log",
        lines=tuple(lines),
        quote="\n".join([*errors, *rest]),
        most_bytes=LOG_SECTION_BYTES,
    )


def sort_log(log: str) -> tuple[list[str], list[str]]:
    """Lines with errors, each with the lines below it that quote the source; and the others."""
    lines = log.splitlines()
    wanted: set[int] = set()
    for number, line in enumerate(lines):
        if ERROR.search(line) and not line[:1].isspace():
            wanted.add(number)
            for below in range(number + 1, min(number + 1 + AFTER_ERROR, len(lines))):
                if not lines[below][:1].isspace():
                    break
                wanted.add(below)
    rest = [line for number, line in enumerate(lines) if number not in wanted and line.strip()]
    return [lines[number] for number in sorted(wanted)], rest


def _of_sanitizer(evidence: SanitizerEvidence, source: str) -> list[Section]:
    fault = evidence.first_fault
    if fault is None:
        return _process(evidence.process)
    count = "an unknown number of" if evidence.error_count is None else str(evidence.error_count)
    found = Section(
        title="First fault",
        lines=(f"{evidence.tool} reported {count} errors; this is the first.",),
        quote="\n".join(_without_backtrace(fault.text)) or fault.kind,
    )
    excerpt = _excerpt(fault, source)
    return [found, *([excerpt] if excerpt else [])]


def _without_backtrace(text: str) -> list[str]:
    """The host's frames are those of our own process that loaded the library."""
    return [line for line in text.splitlines() if not BACKTRACE.match(line)]


def _excerpt(fault: SanitizerFault, source: str) -> Section | None:
    """The source around the fault; None where its file is not the submitted one."""
    number, lines = fault.source_line, source.splitlines()
    if not number or number > len(lines) or "/" in (fault.source_file or "/"):
        return None
    first, last = max(1, number - AROUND_FAULT), min(len(lines), number + AROUND_FAULT)
    shown = [
        f"{'>' if line == number else ' '} {line:5} | {lines[line - 1]}"
        for line in range(first, last + 1)
    ]
    return Section(title=f"Your source around line {number}", quote="\n".join(shown))


def _wrong_outputs(evidence: CorrectnessEvidence) -> list[Section]:
    """Of the first trial that has anything wrong."""
    trial = next((trial for trial in evidence.trials if _is_wrong(trial)), None)
    if trial is None:
        return []
    tolerance = evidence.tolerance
    limit = f"|out - ref| <= {tolerance.atol:g} + {tolerance.rtol:g} * |ref|"
    head = f"Trial {trial.trial} of {evidence.planned_trials} (from 0); limit: {limit}."
    lines = [head, *(output_text(output) for output in trial.outputs)]
    if trial.broken_guards:
        lines.append(f"- written outside of: {', '.join(trial.broken_guards)}")
    if trial.mutated_inputs:
        lines.append(f"- inputs that changed: {', '.join(trial.mutated_inputs)}")
    return [Section(title="Outputs", lines=tuple(lines), most_bytes=3000)]


def _is_wrong(trial: CorrectnessTrial) -> bool:
    wrong = any(output.bad_count or output.unwritten_count for output in trial.outputs)
    return wrong or bool(trial.broken_guards or trial.mutated_inputs)


def output_text(output: OutputError) -> str:
    """One output of one trial in one line: how many are wrong, where first, and how far off."""
    shape = "x".join(map(str, output.shape))
    start = f"- {output.name} ({shape} {output.dtype}): "
    if not output.bad_count and not output.unwritten_count:
        return f"{start}all {output.element_count} elements right"
    facts = [f"{output.bad_count} of {output.element_count} elements wrong"]
    if output.unwritten_count:
        facts.append(f"{output.unwritten_count} never written")
    if output.nonfinite_count:
        facts.append(f"{output.nonfinite_count} NaN or infinite")
    if output.first_bad_index is not None:
        place = ", ".join(map(str, output.first_bad_index))
        wanted, seen = _number(output.first_bad_expected), _number(output.first_bad_actual)
        facts.append(f"first at [{place}]: expected {wanted}, got {seen}")
    for name, value in (
        ("largest absolute error", output.max_abs_error),
        ("largest relative error", output.max_rel_error),
        ("smallest atol that would pass", output.smallest_passing_atol),
        ("RMS error relative to fp32", output.rms_error_to_fp32),
        ("every element is the reference times", output.constant_ratio),
    ):
        if value is not None:
            facts.append(f"{name} {value:.4g}")
    return start + "; ".join(facts)


def _number(value: float | None) -> str:
    return "no finite number" if value is None else f"{value:.6g}"


def _process(process: ProcessReport) -> list[Section]:
    """How it ended, and the last that it printed; nothing where it ended well."""
    if process.ending is Ending.FINISHED and not process.exit_code:
        return []
    how = [f"The process ended: {process.ending.value}."]
    if process.signal is not None:
        how.append(f"Signal {process.signal}.")
    if process.exit_code is not None:
        how.append(f"Exit code {process.exit_code}.")
    seconds = process.duration_ns / 1e9
    how.append(f"It ran for {seconds:.1f} s.")
    tail = process.output_tail.splitlines()[-OUTPUT_LINES:]
    lines = [" ".join(how)]
    if tail:
        lines.append("What it printed last, unchecked:")
    return [Section(title="Process", lines=tuple(lines), quote="\n".join(tail))]
