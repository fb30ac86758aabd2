"""What runs must be what was compiled here: nothing carried as data, nothing launched beside it."""

import subprocess

import pytest

from evaluator.demangling import MOST_NAMES, all_demangled
from evaluator.device_code import foreign_device_code
from evaluator.records.evidence import TimingEvidence
from evaluator.records.verdicts import Stage, Verdict
from evaluator.stages import compilation, sass, timing
from evaluator.stages.timing import judged_kernels
from tests.evaluator.conftest import trick


@pytest.fixture
def library_with(tmp_path):
    """A real shared library that carries these bytes in a section of this name."""

    def make(data: bytes, section: str) -> bytes:
        (tmp_path / "data.bin").write_bytes(data)
        text = f'asm(".section {section},\\"a\\"\\n.incbin \\"{tmp_path}/data.bin\\"\\n.text\\n");'
        (tmp_path / "library.c").write_text(text + "\n")
        command = ["gcc", "-shared", "-o", tmp_path / "library.so", tmp_path / "library.c"]
        subprocess.run(command, check=True)
        return (tmp_path / "library.so").read_bytes()

    return make


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("a cubin", b"\x7fELF\x02\x01" + bytes(10) + b"\x02\x00\xbe\x00"),
        ("a fatbin", b"\x50\xed\x55\xba\x01\x00\x10\x00"),
        ("PTX text", b"//\n.version 8.0\n// a remark\n.target sm_90a\n.address_size 64\n"),
    ],
)
def test_it_finds_device_code_among_data_and_not_where_the_compiler_puts_it(
    library_with, kind, data
):
    carried = library_with(data, ".rodata")
    at = carried.index(data[data.index(b".version") :] if kind == "PTX text" else data)
    assert foreign_device_code(carried) == (f"{kind} at offset {at}",)
    assert foreign_device_code(library_with(data, ".nv_fatbin")) == ()


def test_a_library_whose_headers_cannot_be_read_is_searched_whole():
    data = b"\x7fELF" + bytes(12) + b".version 8.0\n.target sm_90\n"
    assert foreign_device_code(data) == ("PTX text at offset 16",)
    assert foreign_device_code(b"") == ()


def test_words_of_ptx_are_no_device_code(library_with):
    text = b"write .version first, then .target sm_90; .version 8.0 alone is no program"
    assert foreign_device_code(library_with(text, ".rodata")) == ()


def test_a_host_binary_inside_is_no_device_code(library_with):
    inner = library_with(b"nothing", ".rodata")
    assert foreign_device_code(library_with(inner, ".rodata")) == ()


def test_every_kernel_of_a_build_is_known_under_both_of_its_names(bench, make_work):
    work = make_work(trick("honest_plain"))
    for stage in (compilation, sass):
        work = work.with_result(stage.run(work, bench))
    known = judged_kernels(work, bench)
    assert known is not None
    assert "_Z4gemmPK13__nv_bfloat16S1_PS_" in known
    assert len([name for name in known if name.startswith("gemm(")]) == 1


def test_without_a_disassembly_nothing_is_said_about_kernels(bench, make_work):
    assert judged_kernels(make_work(trick("honest_plain")), bench) is None


@pytest.fixture
def run(recorded) -> TimingEvidence:
    value = recorded("timing/h200_gemm_wgmma.json")["evidence"]
    return TimingEvidence.model_validate(value)


def test_a_run_that_launches_the_judged_kernels_passes(run):
    names = frozenset(launch.name for launch in run.launches)
    assert timing.judge(run, known_kernels=names).verdict is Verdict.PASSED


def test_a_kernel_from_elsewhere_is_named_and_banned(run):
    result = timing.judge(run, known_kernels=frozenset({"another(float *)"}))
    assert (result.stage, result.verdict) == (Stage.TIMING, Verdict.BANNED_LIBRARY)
    name = run.launches[0].name
    assert result.message.startswith(f"kernel {name} was launched, but it is not in the judged")
    assert result.evidence.speedup is None


def test_copies_are_no_kernels_and_names_that_were_cut_are_let_be(run):
    copy = run.launches[0].model_copy(update={"kind": "memcpy", "name": "HtoD"})
    cut = run.launches[0].model_copy(update={"name": "x" * timing.NAME_CHARACTERS})
    changed = run.model_copy(update={"launches": (copy, cut)})
    assert timing.judge(changed, known_kernels=frozenset()).verdict is Verdict.PASSED


def test_any_number_of_names_is_made_readable(bench):
    names = [f"_Z{len(str(n)) + 1}k{n}v" for n in range(MOST_NAMES + 3)]
    readable = all_demangled(names, bench.sandbox)
    assert [readable[name] for name in names] == [f"k{n}()" for n in range(MOST_NAMES + 3)]
