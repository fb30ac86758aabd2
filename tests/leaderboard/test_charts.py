import json
import random

from evaluator.problems.catalogue import gemm
from leaderboard.charts import samples_chart
from tests.leaderboard import factories

PROBLEM = gemm(8192, 7168, 5120)


def timing(**changes):
    _, _, evidence = factories.timing(
        PROBLEM, "h200", speedup=0.94, baseline_ns=812_000, dice=random.Random(1)
    )
    return evidence.model_copy(update=changes)


def test_it_draws_every_sample_in_both_forms():
    evidence = timing()
    chart = samples_chart(evidence)
    kernel, baseline = chart.figure["data"]
    assert kernel["y"] == [sample.span_ns / 1e3 for sample in evidence.samples]
    assert kernel["x"] == list(range(1, 151))
    assert len(baseline["y"]) == len(chart.still.baseline) == 150
    assert chart.summary == "150 calls of the kernel and 150 of the baseline"


def test_it_parts_the_trials():
    chart = samples_chart(timing())
    assert [shape["x0"] for shape in chart.figure["layout"]["shapes"]] == [50.5, 100.5]
    assert len(chart.still.borders) == 2


def test_it_writes_long_spans_in_milliseconds():
    evidence = timing()
    slow = evidence.samples[0].model_copy(update={"span_ns": 12_000_000})
    chart = samples_chart(evidence.model_copy(update={"samples": (slow,)}))
    assert chart.figure["data"][0]["y"] == [12.0]
    assert chart.figure["layout"]["yaxis"]["title"]["text"] == "span, ms"
    assert chart.still.unit == "ms"


def test_it_is_plain_json_without_a_template():
    text = json.dumps(samples_chart(timing()).figure, allow_nan=False)
    assert "bdata" not in text


def test_it_draws_one_sample_without_dividing_by_zero():
    evidence = timing()
    chart = samples_chart(
        evidence.model_copy(update={"samples": evidence.samples[:1], "baseline_samples": ()})
    )
    assert len(chart.still.kernel) == 1
    assert chart.still.baseline == ()
