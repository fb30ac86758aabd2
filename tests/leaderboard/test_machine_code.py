"""Names of functions and totals by opcode, as the evidence of a kernel shows them."""

import pytest

from evaluator.records.evidence import InstructionCount
from evaluator.records.verdicts import Tier
from leaderboard.templatetags.machine_code import by_opcode, function_name
from tests.leaderboard import factories
from tests.leaderboard.reading import Page


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("run", "run"),
        ("_Z4gemmPK13__nv_bfloat16S1_PS_", "gemm"),
        ("_ZN45_GLOBAL__N__60da8f03_17_ptxboard_entry_cu_run4gemmE14CUtensorMap_stS0_S0_", "gemm"),
        ("_ZN7tensors4gemmEPf", "tensors::gemm"),
        ("_ZN7tensors4gemmILi128EEEvPf", "tensors::gemm<>"),
        ("_Z4gemmILi128EEvPf", "gemm<>"),
        ("_ZN99short", "_ZN99short"),
        ("_ZL4gemmPf", "_ZL4gemmPf"),
        ("_ZN" + "1a" * 50 + "E", "::".join("a" * 50)),
        ("", ""),
    ],
)
def test_a_symbol_reads_as_its_name(symbol, shown):
    assert function_name(symbol) == shown


def count(opcode, warps, tier=Tier.MMA):
    return InstructionCount(
        function="gemm",
        address=0,
        opcode=opcode,
        text=opcode,
        family="GMMA",
        tier=tier,
        warp_executions=warps,
        thread_executions=32 * warps,
    )


def test_executions_are_summed_by_opcode_the_most_first():
    rows = [count("UTMALDG.2D", 5, Tier.PAYLOAD), count("HGMMA", 40), count("HGMMA", 2)]
    totals = [
        (t.opcode, t.tier, t.rows, t.warp_executions, t.thread_executions) for t in by_opcode(rows)
    ]
    assert totals == [("HGMMA", "mma", 2, 42, 1344), ("UTMALDG.2D", "payload", 1, 5, 160)]


def test_the_page_sums_by_opcode_and_names_functions(client, problems, alice_entrant):
    gemm = problems["gemm_n7168_k5120"]
    one = factories.submission(by=alice_entrant, problem=gemm)
    factories.evaluated(one, factories.stages(gemm.record))
    text = Page(client.get(one.get_absolute_url())).text
    assert "HGMMA mma 2 4 587 520 146 800 640 Each target instruction" in text
