"""The timing judge on runs recorded on an H200 and on what must never become a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.judge.measuring import Copying
from evaluator.judge.tolerances import GPU_EXCESS
from evaluator.records.evidence import BatchBracket, Ending, TimingEvidence, TimingSample
from evaluator.records.verdicts import EvaluatorFault, Verdict
from evaluator.stages import timing

Load = Callable[..., TimingEvidence]
RECORDED = Path(__file__).parents[2] / "examples" / "recorded"


@pytest.fixture
def gemm(recorded) -> Load:
    """The run of the wgmma GEMM that passed, with some fields changed."""
    value = recorded("timing/h200_gemm_wgmma.json")["evidence"]
    whole = TimingEvidence.model_validate(value)
    return lambda **changes: whole.model_copy(update=changes)


def samples_with(seen: TimingEvidence, number: int, **changes: object) -> tuple[TimingSample, ...]:
    changed = seen.samples[number].model_copy(update=changes)
    return (*seen.samples[:number], changed, *seen.samples[number + 1 :])


def scaled(samples: tuple[TimingSample, ...], factor: float) -> tuple[TimingSample, ...]:
    return tuple(s.model_copy(update={"span_ns": int(s.span_ns * factor)}) for s in samples)


def test_it_passes_the_recorded_run_and_computes_its_figures(gemm):
    result = timing.judge(gemm())
    assert result.verdict is Verdict.PASSED
    assert result.message == "752.9 us, 1.007x of cuBLAS (+-0.2%, limit 2.0%)"
    seen = result.evidence
    assert seen.latency_ns == pytest.approx(752_900, rel=1e-4)
    assert seen.speedup == seen.baseline_latency_ns / seen.latency_ns
    assert 1.0 < seen.speedup_low <= seen.speedup <= seen.speedup_high < 1.02


def test_it_passes_attention_under_the_power_limit(recorded):
    value = recorded("timing/h200_mha_forward_causal.json")["evidence"]
    result = timing.judge(TimingEvidence.model_validate(value))
    assert result.message == "1318.0 us, 1.024x of cuDNN (+-0.2%, limit 2.0%)"
    assert {batch.call_count for batch in result.evidence.batches} == {1, 10}


def test_todays_tolerance_holds_for_every_recorded_run(recorded):
    for case in ("gemm_wgmma", "guarded_instruction", "mha_forward_causal"):
        seen = TimingEvidence.model_validate(recorded(f"timing/h200_{case}.json")["evidence"])
        today = seen.model_copy(
            update={
                "tolerated_batch_excess": GPU_EXCESS.share,
                "tolerated_batch_excess_ns": GPU_EXCESS.per_call_ns,
                "tolerated_bracket_ns": GPU_EXCESS.per_bracket_ns,
            }
        )
        assert timing.judge(today).passed, case


def test_it_disputes_the_recorded_forger_by_the_judges_own_clock(recorded):
    value = recorded("timing/h200_timer_forger.json")["evidence"]
    result = timing.judge(TimingEvidence.model_validate(value))
    assert result.verdict is Verdict.TIMING_DISPUTED
    assert result.message == (
        "reported 1026.5 us a call, but 32 calls took 68108.6 us on the judge's clock "
        "(2128.4 us a call), at most 36354.1 us fit the report"
    )
    assert result.evidence.latency_ns is None
    assert result.evidence.speedup is None


def test_honest_brackets_hold_for_a_span_twice_as_long_and_not_for_half_of_it(gemm):
    honest = gemm()
    assert timing.judge(gemm(samples=scaled(honest.samples, 2))).passed
    forged = gemm(samples=scaled(honest.samples, 0.5), speed_of_light_ns=None)
    assert timing.judge(forged).verdict is Verdict.TIMING_DISPUTED


def test_single_calls_are_a_bound_of_their_own(gemm):
    seen = gemm()
    slow = BatchBracket(trial=0, call_count=1, wall_ns=20_000_000)
    bursts = tuple(batch for batch in seen.batches if batch.call_count > 1)
    result = timing.judge(gemm(batches=(*bursts, slow)))
    assert result.verdict is Verdict.TIMING_DISPUTED
    assert "but 1 calls took 20000.0 us" in result.message


def test_one_slow_bracket_among_honest_ones_is_the_machines_noise(gemm):
    seen = gemm()
    slow = seen.batches[0].model_copy(update={"wall_ns": 10 * seen.batches[0].wall_ns})
    assert timing.judge(gemm(batches=(*seen.batches, slow))).passed


def test_faster_than_the_hardware_allows_is_disputed(gemm):
    result = timing.judge(gemm(speed_of_light_ns=800_000.0))
    assert result.verdict is Verdict.TIMING_DISPUTED
    assert result.message == "752.6 us is faster than the hardware allows: 800.0 us"


def without_launches(samples, calls):
    empty = {"launch_count": 0, "span_ns": 0}
    return tuple(
        one.model_copy(update=empty) if number in calls else one
        for number, one in enumerate(samples)
    )


def test_it_names_the_first_call_that_launched_nothing(gemm):
    seen = without_launches(gemm().samples, {20, 21, 60, 149})
    result = timing.judge(gemm(samples=seen))
    assert result.verdict is Verdict.NO_KERNEL
    assert result.message == "call 20 of 150 launched no kernel"


def test_a_record_that_was_lost_is_nobodys_fault(gemm):
    seen = without_launches(gemm().samples, {20, 60, 149})
    result = timing.judge(gemm(samples=seen))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.message == (
        "no kernel was seen in 3 of 150 calls, first in call 20; all others launched some"
    )


def test_records_without_times_are_nobodys_fault_since_a_candidate_can_make_them(gemm):
    seen = samples_with(gemm(), 149, unstamped_count=3)
    result = timing.judge(gemm(samples=seen))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.message == "3 device records came without times, limit 0"


def test_it_takes_the_blame_for_records_of_the_baseline_without_times(gemm):
    first, *others = gemm().baseline_samples
    seen = (first.model_copy(update={"unstamped_count": 3}), *others)
    with pytest.raises(EvaluatorFault, match="no timestamps for 3 baseline records"):
        timing.judge(gemm(baseline_samples=seen))


def test_a_library_that_is_mapped_while_timing_is_banned(gemm):
    mapped = ("/usr/lib/libc.so.6", "/opt/cuda/lib64/libcublasLt.so.13")
    process = gemm().process.model_copy(update={"mapped_libraries": mapped})
    result = timing.judge(gemm(process=process))
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.message == "the process mapped libcublasLt.so.13, which is banned"
    assert timing.judge(gemm(process=process), allowed_libraries=("cublas",)).passed


@pytest.mark.parametrize(
    ("alone_ns", "verdict"), [(610_000, Verdict.PASSED), (600_000, Verdict.INCONCLUSIVE)]
)
def test_a_baseline_that_the_candidate_slowed_is_no_measure(gemm, alone_ns, verdict):
    """It took 758.3 us beside the candidate: 1.25 times 606.6 us."""
    seen = gemm(baseline_alone_ns=alone_ns, tolerated_baseline_excess=0.25)
    result = timing.judge(seen)
    assert result.verdict is verdict
    assert ("before it was loaded" in result.message) is (verdict is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("span_ns", [0, -32])
def test_a_span_without_length_is_no_time(gemm, span_ns):
    result = timing.judge(gemm(samples=samples_with(gemm(), 20, span_ns=span_ns)))
    assert result.verdict is Verdict.TIMING_DISPUTED
    assert result.message == f"call 20 of 150: span of {span_ns} ns"


@pytest.mark.parametrize("field", ["samples", "baseline_samples"])
def test_it_takes_the_blame_for_missing_samples(gemm, field):
    with pytest.raises(EvaluatorFault, match="149 of 150 samples"):
        timing.judge(gemm(**{field: getattr(gemm(), field)[1:]}))


@pytest.mark.parametrize("field", ["batches", "verified"])
def test_a_run_without_brackets_or_verified_calls_is_no_run(gemm, field):
    with pytest.raises(EvaluatorFault, match="no bracket or no verified call"):
        timing.judge(gemm(**{field: ()}))


def test_work_outside_the_calls_is_disputed(gemm):
    result = timing.judge(gemm(samples=samples_with(gemm(), 49, stray_count=2)))
    assert result.verdict is Verdict.TIMING_DISPUTED
    assert result.message.startswith("2 device records lie outside every call")


def test_a_changing_set_of_kernels_is_disputed(gemm):
    result = timing.judge(gemm(launch_sets=2))
    assert result.verdict is Verdict.TIMING_DISPUTED
    assert result.message == "2 different sets of launches among equal calls, 1 allowed"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"bad_count": 7, "output": "C"}, Verdict.INCORRECT_NUMERICAL),
        ({"mutated_inputs": ("A",)}, Verdict.INPUT_MUTATED),
        ({"broken_guards": ("C",)}, Verdict.OUT_OF_BOUNDS_WRITE),
    ],
)
def test_a_wrong_timed_call_gets_the_verdict_of_its_fault(gemm, change, verdict):
    first, *others = gemm().verified
    result = timing.judge(gemm(verified=(first.model_copy(update=change), *others)))
    assert result.verdict is verdict
    assert result.message.startswith(f"timed call {first.call} of trial {first.trial}")


def test_noise_is_nobodys_fault(gemm):
    noisy = tuple(
        sample.model_copy(update={"span_ns": 750_000 + 90_000 * (sample.call % 5 // 2 - 1)})
        for sample in gemm().samples
    )
    result = timing.judge(gemm(samples=noisy))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.message == "the candidate's samples spread by 12.0%, limit 10.0%"
    assert result.evidence.spread == pytest.approx(0.12)
    assert result.evidence.latency_ns is None


def test_a_speedup_that_is_not_known_well_enough_is_inconclusive(gemm):
    """Blocks of the candidate alone that move by 8 %: the ratio moves with them."""
    moving = tuple(
        sample.model_copy(update={"span_ns": 750_000 + 60_000 * (sample.call // 5 % 2)})
        for sample in gemm().samples
    )
    result = timing.judge(gemm(samples=moving))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.message.startswith("the speedup is known to +-")
    assert result.message.endswith("%, limit 2.0%")


def test_the_step_of_the_devices_clock_is_no_noise(recorded):
    """The baseline takes 2.8 us here: four steps of 32 ns are 4.7 % of it."""
    value = recorded("timing/h200_guarded_instruction.json")["evidence"]
    seen = TimingEvidence.model_validate(value)
    stepped = tuple(
        sample.model_copy(update={"span_ns": 2_752 + 128 * (sample.call % 2)})
        for sample in seen.baseline_samples
    )
    assert timing.judge(seen.model_copy(update={"baseline_samples": stepped})).passed
    coarser = tuple(
        sample.model_copy(update={"span_ns": 2_752 + 512 * (sample.call % 2)})
        for sample in seen.baseline_samples
    )
    result = timing.judge(seen.model_copy(update={"baseline_samples": coarser}))
    assert result.verdict is Verdict.INCONCLUSIVE


def test_how_the_process_failed_decides_first(gemm):
    died = gemm().process.model_copy(
        update={"ending": Ending.DEVICE_ERROR, "detail": "CUDA_ERROR_LAUNCH_FAILED (719)"}
    )
    result = timing.judge(gemm(process=died, samples=(), batches=()))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == "CUDA_ERROR_LAUNCH_FAILED (719)"


class NoisyDevice:
    """Answers with noise until `quiet_after` measurements were made."""

    def __init__(self, evidence: TimingEvidence, quiet_after: int) -> None:
        self._evidence, self._quiet_after, self.measured = evidence, quiet_after, 0

    def time(self, _work: object) -> TimingEvidence:
        self.measured += 1
        limit = 0.02 if self.measured > self._quiet_after else 0.0001
        return self._evidence.model_copy(update={"noise_limit": limit})

    def examine(self) -> None:
        return


class Lent:
    def __init__(self, device: NoisyDevice) -> None:
        self.device = device


@pytest.mark.parametrize(
    ("quiet_after", "verdict", "measured"),
    [(0, Verdict.PASSED, 1), (2, Verdict.PASSED, 3), (9, Verdict.INCONCLUSIVE, 3)],
)
def test_noise_is_measured_again_at_most_twice(gemm, make_work, quiet_after, verdict, measured):
    device = NoisyDevice(gemm(), quiet_after)
    result = timing.run(make_work("// nothing"), Lent(device))
    assert (result.verdict, device.measured) == (verdict, measured)


@pytest.mark.parametrize(("count", "expected_ns"), [(1, 20), (3, 40), (11, 120)])
def test_what_the_judges_own_copying_takes_grows_with_the_slots(count, expected_ns):
    copying = Copying(one_ns=20.0, all_ns=120.0, slot_count=11)
    assert copying.of_ns(count) == expected_ns
