"""A problem on which a wrong answer passes does not reach the site."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluator.problems import admissions, find_problem
from leaderboard.models import Problem


def test_nothing_is_stored_while_a_report_refuses_a_problem(db, tmp_path, monkeypatch):
    report = admissions.admission_of(find_problem("gemm_n256_k256"))
    reason = "output 'C': all zeros pass at atol 0.01, rtol 0.01"
    admissions.store(report.model_copy(update={"reasons": (reason,)}), tmp_path)
    monkeypatch.setattr(admissions, "FOLDER", tmp_path)
    admissions._stored.cache_clear()
    try:
        with pytest.raises(CommandError) as refused:
            call_command("sync_catalogue", verbosity=0)
    finally:
        admissions._stored.cache_clear()
    assert str(refused.value).splitlines() == [
        "nothing is stored: wrong answers pass on 1 problems",
        f"gemm_n256_k256 is refused: {reason}",
        "Tighten their tolerance or take them out of the catalogue, then run `ptxboard admit` "
        "again.",
    ]
    assert not Problem.objects.exists()
