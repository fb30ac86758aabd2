"""Reports that go with the problem set: each belongs to one version, and refusals are told."""

import pytest

from evaluator.problems import admissions, find_problem, load_problems
from evaluator.problems.admissions import admission_of, refusals, store

PROBLEM = find_problem("gemm_n256_k256")
REPORT = admission_of(PROBLEM)
assert REPORT is not None
TWINS = [problem for problem in load_problems().values() if problem.development]


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """`stored(report)`: only these are kept, in a folder of the test's."""
    monkeypatch.setattr(admissions, "FOLDER", tmp_path)
    admissions._stored.cache_clear()
    yield lambda report: store(report, tmp_path)
    admissions._stored.cache_clear()


@pytest.mark.parametrize("problem", TWINS, ids=lambda problem: problem.name)
def test_every_twin_comes_with_the_report_that_admits_this_version(problem):
    report = admission_of(problem)
    assert report is not None, "run `ptxboard admit NAME --device cpu --write`"
    assert report.admitted
    assert len({outcome.mutant for outcome in report.outcomes}) >= 10


def test_no_stored_report_refuses_a_problem():
    assert refusals(load_problems().values()) == []


def test_a_report_on_another_version_counts_for_nothing(stored):
    stored(REPORT.model_copy(update={"problem_digest": "0" * 64}))
    assert admission_of(PROBLEM) is None


def test_a_refusal_is_told_with_its_reason(stored):
    stored(REPORT.model_copy(update={"reasons": ("output 'C': all zeros pass",)}))
    assert refusals([PROBLEM]) == ["gemm_n256_k256 is refused: output 'C': all zeros pass"]
