"""Timing stage: how long one call takes with cold caches, beside the tuned baseline.

In        the compiled library; the baseline's call, measured in turn by the same protocol
Out       TimingEvidence: every sample of both, brackets of the judge's clock, verified calls;
          latency, speedup with its 95 % interval, and noise as a fraction
Verdicts  PASSED; RUNTIME_ERROR, TIMEOUT, OUT_OF_MEMORY: how the process failed;
          NO_KERNEL: a call launched nothing; OUT_OF_BOUNDS_WRITE, INPUT_MUTATED,
          INCORRECT_NUMERICAL: a verified call was wrong; BANNED_LIBRARY: mapped, or a kernel was
          launched that is no function of the judged binary;
          TIMING_DISPUTED: work outside the calls, a changing set of kernels, a span that the
          judge's clock contradicts or that the hardware does not allow; INCONCLUSIVE: the speedup
          is not known to within the noise limit, the samples scatter beyond SPREAD_FACTOR times
          that, records came without times or a few calls without records, the baseline was much
          slower than before the candidate was loaded, or on `host`, where other processes share
          the cores, the judge's clock contradicts the span, ATTEMPTS times
Raises    EvaluatorFault: records of the baseline without times, samples missing though nothing
          failed
Source    CUPTI activity records (kernels, copies, memsets) on a GPU; the wall clock on `host`

CUPTI lives in the candidate's process, so its word alone is not enough: bursts of back-to-back
calls and single calls are bracketed by the judge's own clock, inputs brought and outputs taken
within the bracket. What gets past: a forged span within the tolerated excess of the brackets
(evidence holds both); calls of a burst that overlap because one alone does not fill the GPU are
bound by the single calls only; kernels left running that slow the baseline by less than its limit;
a candidate's own copy of a library under another name (the sandbox hides vendors' own files); a
kernel loaded by hand under the name of one that was compiled here.
"""

from collections.abc import Iterator
from statistics import median

from evaluator.bench import Bench
from evaluator.device import device_of
from evaluator.judge.activity import NAME_CHARACTERS
from evaluator.judge.statistics import block_size, spans_by_trial, speedup, spread
from evaluator.judge.tolerances import Excess
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import BatchBracket, Ending, SassEvidence, TimingEvidence
from evaluator.records.verdicts import EvaluatorFault, Stage, Verdict
from evaluator.stages.correctness import (
    VERDICT_OF_ENDING,
    Finding,
    banned_finding,
    process_text,
)
from evaluator.work import Work

ATTEMPTS = 3
# Device timestamps come in steps of 32 ns: a spread of five steps says nothing about the kernel.
RESOLUTION_NS = 160
# A kernel that is now fast, now slow has no latency to rank, however sure its mean ratio is.
SPREAD_FACTOR = 5
# CUPTI may lose the record of a call, or its clock jump: that many are nobody's doing.
LOST_SHARE = 0.02

Result = StageResult[TimingEvidence]


def run(work: Work, bench: Bench) -> Result:
    device, allowed = device_of(bench), work.problem.allowed_libraries
    known = judged_kernels(work)
    result = judge(device.time(work), allowed_libraries=allowed, known_kernels=known)
    for attempt in range(2, ATTEMPTS + 1):
        if result.verdict is not Verdict.INCONCLUSIVE:
            break
        result = judge(device.time(work), allowed_libraries=allowed, known_kernels=known)
        message = f"{result.message} (measured {attempt} times for noise)"
        result = result.model_copy(update={"message": message})
    if not result.passed:
        device.examine()
    return result


def judged_kernels(work: Work) -> frozenset[str] | None:
    """Mangled names of the disassembled binary's functions; None where none was made."""
    sass = work.result(Stage.SASS)
    if sass is None or not isinstance(sass.evidence, SassEvidence):
        return None
    return frozenset(sass.evidence.functions)


def judge(
    evidence: TimingEvidence,
    *,
    allowed_libraries: tuple[str, ...] = (),
    known_kernels: frozenset[str] | None = None,
) -> Result:
    """The first finding in the order of the verdicts above; figures only where it passed.

    `known_kernels` are those that may be launched; None: any.
    """
    finding = next(_findings(evidence, allowed_libraries, known_kernels), None)
    if finding is None:
        evidence = _with_figures(evidence)
        finding = (
            _slowed_baseline(evidence)
            or _noise_finding(evidence)
            or (Verdict.PASSED, _passed_text(evidence))
        )
    verdict, message = finding
    if verdict is not Verdict.PASSED:
        evidence = _without_score(evidence)
    return StageResult[TimingEvidence](
        stage=Stage.TIMING, verdict=verdict, message=message, evidence=evidence
    )


def _findings(
    evidence: TimingEvidence, allowed: tuple[str, ...], known: frozenset[str] | None
) -> Iterator[Finding]:
    if evidence.process.ending is not Ending.FINISHED:
        yield VERDICT_OF_ENDING[evidence.process.ending], process_text(evidence.process)
    _demand_whole(evidence)
    yield from _unstamped(evidence)
    yield from _empty_calls(evidence)
    yield from _wrong_calls(evidence)
    yield from banned_finding(evidence.process, allowed)
    yield from _foreign_kernels(evidence, known)
    yield from _strays(evidence)
    yield from _contradicted(evidence)
    yield from _too_fast(evidence)


def _demand_whole(evidence: TimingEvidence) -> None:
    """Everything that must be there when the process itself did not fail."""
    unstamped = sum(sample.unstamped_count for sample in evidence.baseline_samples)
    if unstamped:
        raise EvaluatorFault(f"timing: CUPTI gave no timestamps for {unstamped} baseline records")
    planned = evidence.planned_trials * evidence.planned_calls
    for name, samples in (("candidate", evidence.samples), ("baseline", evidence.baseline_samples)):
        if len(samples) != planned:
            raise EvaluatorFault(f"timing: {len(samples)} of {planned} samples of the {name}")
    if not evidence.batches or not evidence.verified:
        raise EvaluatorFault("timing: no bracket or no verified call though nothing failed")


def _empty_calls(evidence: TimingEvidence) -> Iterator[Finding]:
    empty = [number for number, sample in enumerate(evidence.samples) if not sample.launch_count]
    if empty and len(empty) <= LOST_SHARE * len(evidence.samples):
        text = f"no kernel was seen in {len(empty)} of {len(evidence.samples)} calls"
        yield Verdict.INCONCLUSIVE, f"{text}, first in call {empty[0]}; all others launched some"
    elif empty:
        text = f"call {empty[0]} of {len(evidence.samples)} launched no kernel"
        yield Verdict.NO_KERNEL, text
    for number, sample in enumerate(evidence.samples):
        if sample.launch_count and sample.span_ns <= 0:
            text = f"call {number} of {len(evidence.samples)}: span of {sample.span_ns} ns"
            yield Verdict.TIMING_DISPUTED, text


def _wrong_calls(evidence: TimingEvidence) -> Iterator[Finding]:
    for call in evidence.verified:
        which = f"timed call {call.call} of trial {call.trial}"
        if call.broken_guards:
            text = f"{which} wrote outside of {', '.join(call.broken_guards)}"
            yield Verdict.OUT_OF_BOUNDS_WRITE, text
        if call.mutated_inputs:
            yield Verdict.INPUT_MUTATED, f"{which} changed input {', '.join(call.mutated_inputs)}"
        if call.bad_count:
            text = f"{which}: output {call.output} has {call.bad_count} wrong elements"
            yield Verdict.INCORRECT_NUMERICAL, f"{text}, though the correctness stage passed"


def _foreign_kernels(evidence: TimingEvidence, known: frozenset[str] | None) -> Iterator[Finding]:
    """What ran must be what was compiled and shown; both names are cut alike."""
    if known is None:
        return
    cut = {name[:NAME_CHARACTERS] for name in known}
    for symbol in evidence.kernel_symbols:
        if symbol not in cut:
            text = f"kernel {symbol[:200]} was launched, but it is not in the judged binary"
            yield Verdict.BANNED_LIBRARY, f"{text}: only what was compiled here may run"


def _unstamped(evidence: TimingEvidence) -> Iterator[Finding]:
    """CUPTI may have failed there, or the candidate may have made it fail: nobody's doing."""
    count = sum(sample.unstamped_count for sample in evidence.samples)
    if count:
        yield Verdict.INCONCLUSIVE, f"{count} device records came without times, limit 0"


def _strays(evidence: TimingEvidence) -> Iterator[Finding]:
    strays = sum(sample.stray_count for sample in evidence.samples)
    if strays:
        text = f"{strays} device records lie outside every call: work must end with its call"
        yield Verdict.TIMING_DISPUTED, text
    if evidence.launch_sets > 1:
        text = f"{evidence.launch_sets} different sets of launches among equal calls, 1 allowed"
        yield Verdict.TIMING_DISPUTED, text


def _contradicted(evidence: TimingEvidence) -> Iterator[Finding]:
    """Bursts and singles each by their shortest bracket: the others may be the machine's noise."""
    excess = Excess(
        share=evidence.tolerated_batch_excess,
        per_call_ns=evidence.tolerated_batch_excess_ns,
        per_bracket_ns=evidence.tolerated_bracket_ns,
    )
    span_ns = median(sample.span_ns for sample in evidence.samples)
    for count in sorted({batch.call_count for batch in evidence.batches}, reverse=True):
        alike = [batch for batch in evidence.batches if batch.call_count == count]
        shortest = min(alike, key=lambda batch: batch.wall_ns)
        allowed_ns = excess.allowed_ns(span_ns, count)
        if shortest.wall_ns > allowed_ns:
            text = _bracket_text(shortest, span_ns, allowed_ns)
            if evidence.timer == "wall":
                yield Verdict.INCONCLUSIVE, f"{text}; a busy CPU does this to honest kernels too"
            yield Verdict.TIMING_DISPUTED, text


def _bracket_text(batch: BatchBracket, span_ns: float, allowed_ns: float) -> str:
    count = batch.call_count
    return (
        f"reported {span_ns / 1e3:.1f} us a call, but {count} calls took "
        f"{batch.wall_ns / 1e3:.1f} us on the judge's clock ({batch.wall_per_call_ns / 1e3:.1f} us "
        f"a call), at most {allowed_ns / 1e3:.1f} us fit the report"
    )


def _too_fast(evidence: TimingEvidence) -> Iterator[Finding]:
    limit_ns = evidence.speed_of_light_ns
    span_ns = median(sample.span_ns for sample in evidence.samples)
    if limit_ns is not None and span_ns < limit_ns:
        text = f"{span_ns / 1e3:.1f} us is faster than the hardware allows: {limit_ns / 1e3:.1f} us"
        yield Verdict.TIMING_DISPUTED, text


def _with_figures(evidence: TimingEvidence) -> TimingEvidence:
    candidate = spans_by_trial(evidence.samples)
    baseline = spans_by_trial(evidence.baseline_samples)
    figures = speedup(candidate, baseline, block_size(evidence.planned_calls))
    return evidence.model_copy(
        update={
            "latency_ns": figures.latency_ns,
            "baseline_latency_ns": figures.baseline_latency_ns,
            "speedup": figures.ratio,
            "speedup_low": figures.low,
            "speedup_high": figures.high,
            "noise": figures.noise,
            "spread": spread(candidate),
            "baseline_spread": spread(baseline),
        }
    )


def _slowed_baseline(evidence: TimingEvidence) -> Finding | None:
    alone_ns, share = evidence.baseline_alone_ns, evidence.tolerated_baseline_excess
    seen_ns = evidence.baseline_latency_ns
    if alone_ns is None or share is None or seen_ns is None or seen_ns <= alone_ns * (1 + share):
        return None
    text = (
        f"the baseline took {seen_ns / 1e3:.1f} us beside the candidate and "
        f"{alone_ns / 1e3:.1f} us before it was loaded, at most {share:.0%} more are allowed"
    )
    return Verdict.INCONCLUSIVE, text


def _noise_finding(evidence: TimingEvidence) -> Finding | None:
    steps = [RESOLUTION_NS / ns for ns in (evidence.latency_ns, evidence.baseline_latency_ns) if ns]
    limit = max(evidence.noise_limit, *steps)
    for what, seen, allowed in (
        ("the speedup is known to +-{}", evidence.noise, limit),
        ("the candidate's samples spread by {}", evidence.spread, SPREAD_FACTOR * limit),
        ("the baseline's samples spread by {}", evidence.baseline_spread, SPREAD_FACTOR * limit),
    ):
        if seen is not None and seen > allowed:
            return Verdict.INCONCLUSIVE, f"{what.format(f'{seen:.1%}')}, limit {allowed:.1%}"
    return None


def _without_score(evidence: TimingEvidence) -> TimingEvidence:
    """A latency or speedup that did not pass is no figure; the samples and the noise stay."""
    return evidence.model_copy(
        update={
            "latency_ns": None,
            "baseline_latency_ns": None,
            "speedup": None,
            "speedup_low": None,
            "speedup_high": None,
        }
    )


def _passed_text(evidence: TimingEvidence) -> str:
    assert evidence.latency_ns is not None
    assert evidence.speedup is not None
    assert evidence.noise is not None
    return (
        f"{evidence.latency_ns / 1e3:.1f} us, {evidence.speedup:.3f}x of "
        f"{evidence.baseline.name} (+-{evidence.noise:.1%}, limit {evidence.noise_limit:.1%})"
    )
