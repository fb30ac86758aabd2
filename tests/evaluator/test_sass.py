"""Families and tiers on disassembly recorded from our own kernels, and on real libraries."""

import pytest

from evaluator.records.evidence import SassEvidence
from evaluator.records.verdicts import EvaluatorFault, Stage, Tier, Verdict
from evaluator.sass import (
    family_of,
    find_matches,
    functions_of,
    opcode_of,
    parse_listing,
    tier_of,
)
from evaluator.stages import compilation, sass
from evaluator.targets import BLACKWELL_FAMILIES, HOPPER_FAMILIES, TARGETS
from evaluator.toolchain import Toolchain
from tests.evaluator.conftest import trick

COUNTED_ON_HOPPER = [
    ("HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT", "GMMA", Tier.MMA),
    ("QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24, gsb0", "GMMA", Tier.MMA),
    ("IGMMA.64x8x32.S8.S8 R24, gdesc[UR4], RZ, !UPT, gsb0", "GMMA", Tier.MMA),
    ("@P0 HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24", "GMMA", Tier.MMA),
    ("@!UP1 UTMALDG.2D [UR4], [UR8]", "UTMALDG", Tier.PAYLOAD),
    ("UTMALDG.2D.MULTICAST [UR4], [UR8], UR10", "UTMALDG", Tier.PAYLOAD),
    ("UTMALDG.4D.IM2COL [UR4], [UR8]", "UTMALDG", Tier.PAYLOAD),
    ("UTMASTG.2D [UR4], [UR8]", "UTMASTG", Tier.PAYLOAD),
    ("UTMAREDG.2D.ADD [UR4], [UR8]", "UTMAREDG", Tier.PAYLOAD),
    ("HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0", "GMMA", Tier.CONTROL),
]
NOT_COUNTED_ON_HOPPER = [
    "UTMAPF.L2.2D [UR4], [UR6]",
    "UTMACCTL.PF [UR6]",
    "UTMACCTL.IV [UR6]",
    "UTMACMDFLUSH",
    "UBLKCP.S.G [UR8], [UR6], UR4",
    "UBLKCP.G.S [UR6], [UR8], UR4",
    "UBLKRED.G.S.ADD [UR6], [UR8], UR4",
    "WARPGROUP.ARRIVE",
    "WARPGROUP.DEPBAR.LE gsb0, 0x0",
    "HMMA.16816.F32.BF16 R4, R4, R2, RZ",
    "HFMA2.MMA R7, -RZ, RZ, 2, 0",
    "LDTM R5, tmem[UR4]",
]
COUNTED_ON_BLACKWELL = [
    ("UTCHMMA gdesc[UR8], gdesc[UR10], tmem[UR6], tmem[UR4], idesc[UR5], UPT", "UTC", Tier.MMA),
    ("UTCQMMA.2CTA gdesc[UR8], gdesc[UR10], tmem[UR6]", "UTC", Tier.MMA),
    ("UTCCP.T.S tmem[UR4], gdesc[UR6]", "UTC", Tier.PAYLOAD),
    ("UTCSHIFT.DOWN tmem[UR4]", "UTC", Tier.PAYLOAD),
    ("LDTM R5, tmem[UR4]", "LDTM", Tier.PAYLOAD),
    ("STTM tmem[UR4], R0", "STTM", Tier.PAYLOAD),
    ("UTCBAR [UR4], URZ", "UTC", Tier.CONTROL),
    ("UTCATOMSWS.FIND_AND_SET.ALIGN UP0, UR6, UR6", "UTC", Tier.CONTROL),
]


def classified(text, families):
    opcode = opcode_of(text)
    family = family_of(opcode, families)
    return (family, tier_of(text, opcode)) if family else None


@pytest.mark.parametrize(("text", "family", "tier"), COUNTED_ON_HOPPER)
def test_it_counts_on_hopper(text, family, tier):
    assert classified(text, HOPPER_FAMILIES) == (family, tier)


@pytest.mark.parametrize("text", NOT_COUNTED_ON_HOPPER)
def test_it_does_not_count_on_hopper(text):
    assert classified(text, HOPPER_FAMILIES) is None


@pytest.mark.parametrize(("text", "family", "tier"), COUNTED_ON_BLACKWELL)
def test_it_counts_on_blackwell(text, family, tier):
    assert classified(text, BLACKWELL_FAMILIES) == (family, tier)


@pytest.mark.parametrize("text", ["UTMALDG.2D [UR4], [UR8]", "HMMA.16816.F32 R4, R4, R2, RZ"])
def test_it_does_not_count_on_blackwell(text):
    assert classified(text, BLACKWELL_FAMILIES) is None


def matched_by_function(listing, families):
    found = find_matches(parse_listing(listing), families)
    return {(match.instruction.function, match.instruction.opcode, match.tier) for match in found}


def test_the_recorded_hopper_listing_gives_exactly_the_kernels_that_count(recorded):
    listing = recorded("sass/hopper_families.json")["output"]
    assert matched_by_function(listing, HOPPER_FAMILIES) == {
        ("_Z8bf16_mmaPfmm", "HGMMA.64x8x16.F32.BF16", Tier.MMA),
        ("_Z7fp8_mmaPfmm", "QGMMA.64x8x32.F32.E4M3.E4M3", Tier.MMA),
        ("_Z8int8_mmaPimm", "IGMMA.64x8x32.S8.S8", Tier.MMA),
        ("_Z11bare_commitv", "HGMMA.64x8x16.F16", Tier.CONTROL),
        ("_Z11tensor_loadmjj", "UTMALDG.2D", Tier.PAYLOAD),
        ("_Z16tensor_multicastmjj", "UTMALDG.2D.MULTICAST", Tier.PAYLOAD),
        ("_Z12tensor_storemj", "UTMASTG.2D", Tier.PAYLOAD),
        ("_Z13tensor_reducemj", "UTMAREDG.2D.ADD", Tier.PAYLOAD),
        ("_Z13guarded_storemji", "UTMASTG.2D", Tier.PAYLOAD),
    }


def test_the_recorded_blackwell_listing_gives_exactly_the_kernels_that_count(recorded):
    listing = recorded("sass/blackwell_families.json")["output"]
    assert matched_by_function(listing, BLACKWELL_FAMILIES) == {
        ("_Z10tensor_mmajmmj", "UTCHMMA", Tier.MMA),
        ("_Z14tensor_mma_fp8jmmj", "UTCQMMA", Tier.MMA),
        ("_Z10bare_allocPj", "UTCATOMSWS.FIND_AND_SET.ALIGN", Tier.CONTROL),
        ("_Z11bare_commitPm", "UTCBAR", Tier.CONTROL),
        ("_Z11tensor_copyjm", "UTCCP.T.S", Tier.PAYLOAD),
        ("_Z11tensor_loadPjj", "LDTM", Tier.PAYLOAD),
        ("_Z12tensor_storejj", "STTM", Tier.PAYLOAD),
        ("_Z12tensor_shiftj", "UTCSHIFT.DOWN", Tier.PAYLOAD),
    }


def test_a_row_keeps_its_address_and_its_text(recorded):
    rows = parse_listing(recorded("sass/hopper_families.json")["output"])
    [row] = [row for row in rows if row.opcode == "UTMAREDG.2D.ADD"]
    assert (row.address, row.text) == (0x70, "UTMAREDG.2D.ADD [UR4], [UR8]")


def test_names_sections_and_encodings_are_never_rows():
    listing = (
        "\t\tFunction : _Z24HGMMA_64x256x16_F32_BF16Pf\n"
        '\t.section\t.text.UTMALDG.2D,"ax"\n'
        "                                         /* 0x000fe20000000800 */\n"
        "        /*0000*/                   EXIT ;            /* 0x000000000000794d */\n"
        "HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4] ;\n"
    )
    assert [row.opcode for row in parse_listing(listing)] == ["EXIT"]
    assert functions_of(listing) == ("_Z24HGMMA_64x256x16_F32_BF16Pf",)


def judged(recorded, name, target, function=None):
    listing = recorded(f"sass/{name}_families.json")["output"]
    if function is not None:
        blocks = listing.split("\t\tFunction : ")
        listing = "\t\tFunction : " + next(block for block in blocks if block.startswith(function))
    evidence = sass.read(
        listing, TARGETS[target], cubin_sha256="0" * 64, tool_version="cuobjdump", kept=None
    )
    return sass.judge(evidence)


def test_a_binary_without_target_instructions_passes_and_says_so(recorded):
    for function in ("_Z24HGMMA", "_Z10UTMALDG_2D", "_Z15tensor_prefetch", "_Z10plain_bulk"):
        result = judged(recorded, "hopper", "h200", function)
        assert (result.verdict, result.message) == (
            Verdict.PASSED,
            "no target instruction in the binary",
        )
        assert (result.evidence.literal_match, result.evidence.tier) == (False, None)


def test_a_guarded_instruction_stands_in_the_binary(recorded):
    result = judged(recorded, "hopper", "h200", "_Z13guarded_store")
    assert (result.message, result.evidence.tier) == ("UTMASTG.2D x1", Tier.PAYLOAD)


def test_a_bare_commit_matches_literally_but_only_as_control(recorded):
    result = judged(recorded, "hopper", "h200", "_Z11bare_commit")
    assert result.evidence.literal_match is True
    assert result.evidence.tier is Tier.CONTROL
    assert result.message == ("HGMMA.64x8x16 x1 (control only: no arithmetic and no data movement)")


def test_the_message_names_arithmetic_first(recorded):
    result = judged(recorded, "blackwell", "b200")
    assert result.message == (
        "UTCHMMA x1, UTCQMMA x1, LDTM x1, STTM x1, UTCCP.T x1, UTCSHIFT.DOWN x1 and 2 more opcodes"
    )
    assert result.evidence.match_count == 9


def test_the_hopper_listing_on_a_blackwell_board_has_nothing_to_count(recorded):
    assert judged(recorded, "hopper", "b200").evidence.literal_match is False


def test_counts_cover_every_opcode(recorded):
    evidence = judged(recorded, "hopper", "h200").evidence
    counts = {row.opcode: row.count for row in evidence.opcode_counts}
    assert counts["UTMASTG.2D"] == 2
    assert counts["EXIT"] >= len(evidence.functions) == 14
    assert sum(counts.values()) == len(
        parse_listing(recorded("sass/hopper_families.json")["output"])
    )


def lane(bench, work):
    work = work.with_result(compilation.run(work, bench))
    return work, sass.run(work, bench)


def test_it_reads_the_very_library_that_was_built(bench, make_work):
    work, result = lane(bench, make_work(trick("unlaunched_tma")))
    assert result.message == "HGMMA.64x8x16 x1, UTMALDG.2D x1, UTMASTG.2D x1"
    assert isinstance(result.evidence, SassEvidence)
    assert result.evidence.cubin_sha256 == work.artifact("cubin").sha256
    done = work.with_result(result)
    assert b"UTMALDG.2D" in done.path(done.artifact("sass")).read_bytes()


def test_it_sees_the_kernels_of_every_source(bench, make_work):
    text = 'extern "C" void run(const void*, const void*, void*, cudaStream_t) {}\n'
    stored = "__global__ void {name}(unsigned long m, unsigned s) {{ asm volatile("
    stored += '"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0,{{%2,%2}}],[%1];"'
    stored += ' ::"l"(m), "r"(s), "r"(0) : "memory"); }}\n'
    files = {f"{folder}/same.cu": stored.format(name=f"k{folder}") for folder in "ab"}
    _, result = lane(bench, make_work(text, files=files))
    assert result.message == "UTMASTG.2D x2"


def test_a_kernel_only_called_like_one_has_none(bench, make_work):
    _, result = lane(bench, make_work(trick("name_decoy")))
    assert result.evidence.literal_match is False


def test_a_library_without_kernels_has_none(bench, make_work):
    text = 'extern "C" void run(const void*, const void*, void*, cudaStream_t) {}\n'
    _, result = lane(bench, make_work(text))
    assert (result.message, result.evidence.functions) == (sass.ABSENT, ())


def test_other_bytes_than_those_built_are_our_fault(bench, make_work):
    work = make_work(trick("honest_plain"))
    work = work.with_result(compilation.run(work, bench))
    (work.folder / work.artifact("library").sha256).write_bytes(b"\x7fELF other")
    with pytest.raises(EvaluatorFault, match="library: expected SHA-256"):
        sass.run(work, bench)


def test_a_missing_disassembler_is_our_fault(bench, make_work):
    work = make_work(trick("honest_plain"))
    work = work.with_result(compilation.run(work, bench))
    bare = type(bench)(sandbox=bench.sandbox, toolchain=Toolchain(nvcc=bench.toolchain.nvcc))
    with pytest.raises(EvaluatorFault, match="cuobjdump was not found"):
        sass.run(work, bare)
    assert work.result(Stage.SASS) is None
