"""The correctness judge: the order of its findings and the words of each."""

import pytest

from evaluator.records.evidence import (
    CorrectnessEvidence,
    CorrectnessTrial,
    Ending,
    OutputError,
    ProcessReport,
)
from evaluator.records.problem import Tolerance
from evaluator.records.verdicts import EvaluatorFault, Verdict
from evaluator.stages import correctness

FINE = OutputError(
    name="C",
    shape=(1000,),
    dtype="float32",
    element_count=1000,
    unwritten_count=0,
    nonfinite_count=0,
    bad_count=0,
    max_abs_error=0.001,
)


def trial(number: int, output: OutputError = FINE, **more: object) -> CorrectnessTrial:
    return CorrectnessTrial(trial=number, outputs=(output,), **more)


def evidence(
    *trials: CorrectnessTrial, repeat: bool | None = False, **process: object
) -> CorrectnessEvidence:
    report = {"command": ("python",), "ending": Ending.FINISHED, "exit_code": 0, "duration_ns": 1}
    return CorrectnessEvidence(
        process=ProcessReport.model_validate({**report, **process}),
        tolerance=Tolerance(),
        planned_trials=3,
        trials=trials or (trial(0), trial(1), trial(2)),
        library_sha256="0" * 64,
        repeat_differs=repeat,
    )


def wrong(**changes: object) -> OutputError:
    bad = {"bad_count": 232, "first_bad_index": (768,), "first_bad_expected": 1.5}
    return FINE.model_copy(update={**bad, "first_bad_actual": 0.25, **changes})


def test_it_passes_the_run_recorded_on_an_h200(recorded):
    value = recorded("correctness/h200_gemm_wgmma.json")["evidence"]
    result = correctness.judge(CorrectnessEvidence.model_validate(value))
    assert result.verdict is Verdict.PASSED
    assert result.message == "3 trials correct, largest error 0"


def test_the_message_says_output_count_place_values_and_limit():
    result = correctness.judge(evidence(trial(0), trial(1, wrong()), trial(2)))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message == (
        "output C: 232 of 1000 elements wrong, first at (768,), expected 1.5, got 0.25; "
        "limit |out-ref| <= 0.01 + 0.01*|ref|"
    )


def test_unwritten_comes_before_wrong_and_tells_a_missing_launch():
    empty = wrong(unwritten_count=1000, bad_count=1000)
    result = correctness.judge(evidence(trial(0, empty), trial(1), trial(2)))
    assert result.message.startswith("output C: 1000 of 1000 elements never written; check the ")


def test_a_tail_that_was_never_written_is_counted_and_placed():
    tail = wrong(unwritten_count=232, bad_count=232)
    result = correctness.judge(evidence(trial(0, tail), trial(1), trial(2)))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message == "output C: 232 of 1000 elements never written, first at (768,)"


def test_unwritten_elements_among_wrong_ones_are_not_given_the_wrong_ones_place():
    mixed = wrong(unwritten_count=2, bad_count=232)
    result = correctness.judge(evidence(trial(0, mixed), trial(1), trial(2)))
    assert result.message == "output C: 2 of 1000 elements never written"


def test_a_constant_ratio_and_values_that_are_not_finite_are_told():
    output = wrong(constant_ratio=0.6931, nonfinite_count=3, first_bad_actual=None)
    message = correctness.judge(evidence(trial(0, output), trial(1), trial(2))).message
    assert "got not finite; limit" in message
    assert message.endswith("; 3 are NaN or infinite; constant ratio 0.6931 to the reference")


@pytest.mark.parametrize(
    ("case", "verdict", "words"),
    [
        ("memory_hog", Verdict.OUT_OF_MEMORY, "took 129.5 GiB of GPU memory beside its buffers"),
        ("infinite_loop", Verdict.TIMEOUT, "no answer to 'call' after 10 s, limit reached"),
    ],
)
def test_how_the_process_failed_decides_first(recorded, case, verdict, words):
    value = recorded(f"correctness/h200_{case}.json")["evidence"]
    result = correctness.judge(CorrectnessEvidence.model_validate(value))
    assert result.verdict is verdict
    assert result.message.startswith(words)


def test_a_crash_quotes_the_last_line_that_was_printed():
    seen = evidence(
        trial(0), ending=Ending.CRASHED, detail="ended by signal 6 (SIGABRT)", output_tail="a\nb\n"
    )
    result = correctness.judge(seen)
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == "ended by signal 6 (SIGABRT); last output: b"


def test_guards_come_before_inputs_and_inputs_before_numbers():
    all_wrong = trial(2, wrong(), mutated_inputs=("A",), broken_guards=("C",))
    verdicts = [
        correctness.judge(evidence(trial(0), trial(1), seen)).verdict
        for seen in (
            all_wrong,
            all_wrong.model_copy(update={"broken_guards": ()}),
            all_wrong.model_copy(update={"broken_guards": (), "mutated_inputs": ()}),
        )
    ]
    assert verdicts == [
        Verdict.OUT_OF_BOUNDS_WRITE,
        Verdict.INPUT_MUTATED,
        Verdict.INCORRECT_NUMERICAL,
    ]


def test_two_calls_that_disagree_are_wrong():
    assert correctness.judge(evidence(repeat=True)).verdict is Verdict.INCORRECT_NUMERICAL


def test_a_vendor_library_that_was_mapped_is_banned_unless_the_problem_allows_it():
    seen = evidence(mapped_libraries=("/usr/lib/libm.so.6", "/x/libcublasLt.so.13"))
    result = correctness.judge(seen)
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.message == "the process mapped libcublasLt.so.13, which is banned"
    assert correctness.judge(seen, allowed_libraries=("cuBLAS",)).passed


def test_a_problem_that_allows_cub_does_not_allow_cublas():
    seen = evidence(mapped_libraries=("/x/libcublas.so.13",))
    for allowed in (("CUB", "Thrust"), ("cub",)):
        assert correctness.judge(seen, allowed_libraries=allowed).verdict is Verdict.BANNED_LIBRARY


def test_missing_trials_without_a_failure_are_our_fault():
    with pytest.raises(EvaluatorFault, match="2 of 3 trials though nothing failed"):
        correctness.judge(evidence(trial(0), trial(1)))


def test_a_repeat_that_was_not_made_is_our_fault():
    with pytest.raises(EvaluatorFault, match="3 of 3 trials though nothing failed"):
        correctness.judge(evidence(repeat=None))


def test_every_output_is_compared_and_not_only_the_first():
    second = wrong(name="LSE")
    both = CorrectnessTrial(trial=1, outputs=(FINE, second))
    result = correctness.judge(evidence(trial(0), both, trial(2)))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output LSE: 232 of 1000 elements wrong")
    unwritten = both.model_copy(update={"outputs": (FINE, wrong(name="LSE", unwritten_count=9))})
    result = correctness.judge(evidence(trial(0), unwritten, trial(2)))
    assert result.message == "output LSE: 9 of 1000 elements never written"


def test_a_reference_with_nan_is_our_fault():
    output = FINE.model_copy(update={"reference_nan_count": 1})
    with pytest.raises(EvaluatorFault, match="the reference of C holds NaN"):
        correctness.judge(evidence(trial(0), trial(1), trial(2, output)))
