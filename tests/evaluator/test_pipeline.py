"""The loop: order, stamps, early end, and whose fault an exception is."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from evaluator import pipeline
from evaluator.records.evaluation import StageResult
from evaluator.records.verdicts import EvaluatorFault, Lane, Stage, Verdict

pytestmark = pytest.mark.serial

HOST_RUN = 'extern "C" void run(const void* a, const void* b, void* c) {}\n'


def passing(stage, verdict=Verdict.PASSED):
    return lambda work, bench: StageResult(stage=stage, verdict=verdict, message=stage.value)


@pytest.fixture
def stages(monkeypatch):
    """Stand-ins by stage, all passing; a test replaces what it needs."""
    modules = {stage: SimpleNamespace(run=passing(stage)) for stage in Stage}
    monkeypatch.setattr(pipeline, "_module", modules.__getitem__)
    return modules


def seen(results):
    return [result.stage.value for result in results]


def test_the_build_lane_of_a_gpu_target_has_three_stages(stages, make_work):
    results = list(pipeline.run_lane(make_work("x"), None, Lane.BUILD))
    assert seen(results) == ["policy", "compilation", "sass"]


def test_the_gpu_lane_follows_in_order(stages, make_work):
    results = list(pipeline.run_lane(make_work("x"), None, Lane.GPU))
    assert seen(results) == ["sanitizer", "correctness", "counters", "timing"]


def test_the_host_target_needs_no_gpu_stage(stages, make_work):
    work = make_work("x", target="host")
    assert seen(pipeline.run_lane(work, None, Lane.BUILD)) == ["policy", "compilation"]
    assert seen(pipeline.run_lane(work, None, Lane.GPU)) == ["correctness", "timing"]


def test_it_stops_at_the_first_stage_that_did_not_pass(stages, make_work):
    stages[Stage.COMPILATION].run = passing(Stage.COMPILATION, Verdict.COMPILE_ERROR)
    results = list(pipeline.run_lane(make_work("x"), None, Lane.BUILD))
    assert seen(results) == ["policy", "compilation"]


def test_a_stage_sees_the_results_before_it(stages, make_work):
    def look(work, bench):
        assert seen(work.results) == ["policy", "compilation"]
        return passing(Stage.SASS)(work, bench)

    stages[Stage.SASS].run = look
    assert len(list(pipeline.run_lane(make_work("x"), None, Lane.BUILD))) == 3


def test_each_result_is_stamped(stages, make_work):
    for result in pipeline.run_lane(make_work("x"), None, Lane.BUILD):
        assert result.started_at <= result.ended_at
        assert result.started_at.tzinfo is not None


def test_what_is_done_is_not_done_again(stages, make_work):
    done = passing(Stage.POLICY)(None, None)
    work = make_work("x").with_result(done)
    assert seen(pipeline.run_lane(work, None, Lane.BUILD)) == ["compilation", "sass"]


def test_after_a_failure_in_another_lane_nothing_runs(stages, make_work):
    failed = passing(Stage.COMPILATION, Verdict.COMPILE_ERROR)(None, None)
    assert list(pipeline.run_lane(make_work("x").with_result(failed), None, Lane.GPU)) == []


def test_it_ends_between_stages_when_cancelled(stages, make_work):
    answers = iter([False, True])
    work = replace(make_work("x"), cancelled=lambda: next(answers))
    assert seen(pipeline.run_lane(work, None, Lane.BUILD)) == ["policy"]


def test_an_unforeseen_exception_is_our_fault_with_its_traceback(stages, make_work):
    def broken(work, bench):
        return {}["answer"]

    stages[Stage.POLICY].run = broken
    with pytest.raises(EvaluatorFault, match=r"policy: KeyError: 'answer'\n(?s:.*)in broken"):
        list(pipeline.run_lane(make_work("x"), None, Lane.BUILD))


def test_a_fault_keeps_its_words(stages, make_work):
    def faulty(work, bench):
        raise EvaluatorFault("the disk is full")

    stages[Stage.POLICY].run = faulty
    with pytest.raises(EvaluatorFault, match=r"^the disk is full$"):
        list(pipeline.run_lane(make_work("x"), None, Lane.BUILD))


def test_a_stage_cannot_answer_for_another(stages, make_work):
    stages[Stage.POLICY].run = passing(Stage.TIMING)
    with pytest.raises(EvaluatorFault, match="returned a result of timing"):
        list(pipeline.run_lane(make_work("x"), None, Lane.BUILD))


def test_a_real_build_lane_ends_in_a_library(bench, make_work):
    work = make_work(HOST_RUN, target="host")
    results = list(pipeline.run_lane(work, bench, Lane.BUILD))
    assert [result.verdict for result in results] == [Verdict.PASSED, Verdict.PASSED]
    assert results[-1].artifacts[-1].role == "library"
