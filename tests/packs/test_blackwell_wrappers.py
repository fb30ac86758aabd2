"""The Blackwell pack's wrappers: compiled for sm_100a, and found in the machine code.

Not covered: whether they do what they say. There is no B200 here; the pack and its page say so.
"""

import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.cli import evaluate
from packs.pack import ROOT, Level, find_pack
from tests.packs import lint
from tests.packs.machine_code import compile_cubin, machine_code

PROBES = ROOT / "blackwell" / "probes"
ROWS = tomllib.loads((PROBES / "probes.toml").read_text())["wrapper"]
HOPPER_PROBES = ROOT / "hopper" / "probes"
HOPPER_ROWS = tomllib.loads((HOPPER_PROBES / "probes.toml").read_text())["wrapper"]
SHARED_HEADERS = [
    part.path.name
    for part in find_pack("blackwell").parts_of(Level.FUNCTIONS)
    if part.file.startswith("../")
]
SHARED_ROWS = [row for row in HOPPER_ROWS if row["header"] in SHARED_HEADERS]
SHARED_ROWS_ON_DEVICE = [row for row in SHARED_ROWS if "sass" in row]
# Where sm_100a has another instruction for the same wrapper.
DIFFERENT_ON_BLACKWELL = {"cluster_size": [r"\bCS2R\S* \S+, SR_CgaSize"]}


@pytest.fixture(scope="module")
def kernels_of(tmp_path_factory):
    """Compiles a program once and gives its machine code."""

    @cache
    def compiled(program: Path) -> dict[str, list[str]]:
        out = tmp_path_factory.mktemp("cubins")
        return machine_code(compile_cubin(program, out, arch="100a"))

    return compiled


def instructions(kernels: dict[str, list[str]], kernel: str) -> str:
    """Of every kernel whose name begins so, mangled or not."""
    called = re.compile(rf"(?:_Z[A-Z]*\d+)?{kernel}")
    texts = [text for name, rows in kernels.items() if called.match(name) for text in rows]
    assert texts, f"no kernel {kernel} among {sorted(kernels)}"
    return "\n".join(texts)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["kernel"] + "-" + row["name"])
def test_it_finds_a_wrapper_in_the_machine_code_of_its_probe(kernels_of, row):
    text = instructions(kernels_of(PROBES / row["program"]), row["kernel"])
    assert row.get("sass") or row["no_sass"]
    missing = [pattern for pattern in row.get("sass", ()) if not re.search(pattern, text)]
    assert missing == [], text[:2000]


@pytest.mark.parametrize(
    "row", SHARED_ROWS_ON_DEVICE, ids=lambda row: row["kernel"] + "-" + row["name"]
)
def test_it_finds_a_shared_wrapper_in_the_machine_code_for_blackwell(kernels_of, row):
    text = instructions(kernels_of(HOPPER_PROBES / row["program"]), row["kernel"])
    patterns = DIFFERENT_ON_BLACKWELL.get(row["name"], row.get("sass", ()))
    assert [pattern for pattern in patterns if not re.search(pattern, text)] == [], text[:2000]


@pytest.mark.parametrize(
    ("program", "kernel", "opcodes"),
    [
        ("schedule_gemm.cu", r"\S*gemm_pair", "UTCHMMA.2CTA UTMALDG.2D.2CTA LDTM.x64 UTMASTG.2D"),
        ("schedule_gemm.cu", "gemm_multicast", "UTCHMMA UTMALDG.2D.MULTICAST UTCBAR.MULTICAST"),
        ("schedule_forward.cu", "attention_forwardILb0E", "UTCHMMA LDTM.x32 STTM.x16 MUFU.EX2"),
        ("schedule_forward.cu", "attention_forwardILb1E", "UTCHMMA LDTM.x32 STTM.x16 USETMAXREG"),
        ("schedule_backward.cu", "attention_backward1", "UTCHMMA LDTM.x32 STTM.x32 UTMAREDG.2D"),
        ("schedule_backward.cu", "attention_backward_dq", "UTCHMMA LDTM.x32 STTM.x16"),
    ],
)
def test_its_schedules_compile_as_whole_kernels(kernels_of, program, kernel, opcodes):
    text = instructions(kernels_of(PROBES / program), kernel)
    assert [opcode for opcode in opcodes.split() if opcode not in text] == []
    spills = len(re.findall(r"\b(?:STL|LDL)\b", text))
    assert spills <= 12, f"{spills} accesses of local memory"


def test_its_gemm_passes_the_build_stages_of_the_product(tmp_path, capsys, monkeypatch):
    """As one file, the way a candidate comes: policy, compilation and sass for the target b200."""
    monkeypatch.setattr(evaluate, "gpu_facts", lambda: {"device_name": None})
    candidate = tmp_path / "gemm_tcgen05.cu"
    candidate.write_text(flattened(PROBES / "schedule_gemm.cu"))
    typed = ["evaluate", str(candidate), "--problem", "gemm_n7168_k5120", "--target", "b200"]
    main([*typed, "--no-cache"])
    printed = capsys.readouterr()
    assert "UTCHMMA.2CTA x4" in printed.err
    assert "BUILD PASSED" in printed.out


def flattened(path: Path) -> str:
    """A program with the pack's headers in the place of their #include lines."""
    include = re.compile(r'^#include "(.+)"$', re.MULTILINE)
    return include.sub(lambda found: flattened(path.parent / found[1]), path.read_text())


def test_a_load_of_128_columns_does_not_compile_for_512_threads(tmp_path):
    """What the texts say of it."""
    unit = tmp_path / "wide.cu"
    unit.write_text(
        f'#include "{ROOT}/blackwell/templates/tmem.cuh"\n'
        "__global__ __launch_bounds__(512, 1) void wide(unsigned* out, unsigned at) {\n"
        "  unsigned r[128];\n  ptx::tmem_ld(r, at);\n  ptx::tmem_wait_ld();\n"
        "  for (int i = 0; i < 128; ++i) out[i] = r[i];\n}\n"
    )
    with pytest.raises(AssertionError, match="Insufficient registers"):
        compile_cubin(unit, tmp_path, arch="100a")


def test_it_elects_once_where_one_thread_is_elected_and_at_each_product_where_it_is_not(tmp_path):
    """The count that the source measured:elect stands for."""
    unit = tmp_path / "elect.cu"
    templates = ("hopper/templates/sync", "blackwell/templates/tmem", "blackwell/templates/tcgen05")
    body = """
      for (int i = 0; i < 5; ++i) {
        mma_ss_row<MmaKind::kF16, 1>(d, tile_desc_k_major(s + 1024 * i), tile_desc_k_major(s),
                                     mma_idesc(128, 256, Elem::kBF16, Elem::kBF16), i > 0);
        tcgen05_commit<1>(bar);
      }"""
    unit.write_text(
        "".join(f'#include "{ROOT}/{name}.cuh"\n' for name in templates)
        + "using namespace ptx;\n"
        + "__global__ void by_thread(unsigned d, unsigned s, unsigned bar) {\n"
        + f"  if (threadIdx.x == 0) {{{body}}}\n}}\n"
        + "__global__ void by_election(unsigned d, unsigned s, unsigned bar) {\n"
        + "  if (__shfl_sync(~0u, threadIdx.x / 32, 0) == 0 && elect_one()) {"
        + f"{body}}}\n}}\n"
    )
    kernels = machine_code(compile_cubin(unit, tmp_path, arch="100a"))
    elections = [
        instructions(kernels, name).count("ELECT") for name in ("by_thread", "by_election")
    ]
    assert elections == [25, 1]


def test_it_has_a_probe_for_every_wrapper():
    wrappers = lint.functions_of(find_pack("blackwell"))
    proved = {row["name"] for row in (*ROWS, *SHARED_ROWS)}
    assert wrappers - proved - {"advance"} == set()
    assert proved - wrappers == {"Ring"}
    assert len(wrappers) > 80


def test_it_compiles_all_headers_together_as_a_model_would_paste_them(tmp_path):
    unit = tmp_path / "all.cu"
    unit.write_text("".join(part.text for part in find_pack("blackwell").parts_of(Level.FUNCTIONS)))
    assert compile_cubin(unit, tmp_path, arch="100a").exists()


def test_a_program_with_a_tcgen05_instruction_does_not_compile_for_hopper(tmp_path):
    """The proof that the architecture of the other tests is really Blackwell's."""
    with pytest.raises(AssertionError, match="tcgen05"):
        compile_cubin(PROBES / "tcgen05.cu", tmp_path, arch="90a")


def host_program(tmp_path: Path, header: str, body: str) -> str:
    """What a program prints that has a header's plain functions on the CPU."""
    cxx = shutil.which("g++")
    assert cxx, "g++ is part of what the tests need"
    source = tmp_path / "host.cpp"
    source.write_text(
        "#include <cmath>\n#include <cstdint>\n#include <cstdio>\n#include <cstring>\n"
        "#define __device__\n#define __host__\n"
        "struct float2 { float x, y; };\n"
        "inline float2 make_float2(float x, float y) { return {x, y}; }\n"
        "inline int __float_as_int(float x) { int i; memcpy(&i, &x, 4); return i; }\n"
        "inline float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }\n"
        "inline unsigned __float_as_uint(float x) { return __float_as_int(x); }\n"
        "inline float __uint_as_float(unsigned i) { return __int_as_float(i); }\n"
        f'#include "{ROOT}/blackwell/templates/tmem.cuh"\n'
        f'#include "{ROOT}/blackwell/templates/{header}"\n'
        f"using namespace ptx;\nint main() {{\n{body}\n}}\n"
    )
    command = [cxx, "-std=c++17", "-O1", "-w", "-o", tmp_path / "host", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return subprocess.run(
        [tmp_path / "host"], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_it_packs_descriptors_as_the_tables_of_the_contracts_say(tmp_path):
    printed = host_program(
        tmp_path,
        "tcgen05.cuh",
        """
        printf("%08x\\n", mma_idesc(128, 256, Elem::kBF16, Elem::kBF16));
        printf("%08x\\n", mma_idesc(256, 128, Elem::kE5M2, Elem::kE2M1, Acc::kF16, true, false));
        printf("%08x\\n", mma_idesc(64, 8, Elem::kTF32, Elem::kTF32, Acc::kF32, false, true));
        printf("%016lx\\n", tile_desc_k_major(0x8400));
        printf("%016lx\\n", tile_desc_advance(tile_desc_mn_major(0x400, 16384), 2048));
        printf("%016lx\\n", tile_desc(0x39000, 128, 256, TileSwizzle::k32B));
        """,
    )
    idesc = 1 << 4 | 1 << 7 | 1 << 10 | (256 >> 3) << 17 | (128 >> 4) << 24
    narrow = 1 << 7 | 5 << 10 | 1 << 15 | (128 >> 3) << 17 | (256 >> 4) << 24
    tf32 = 1 << 4 | 2 << 7 | 2 << 10 | 1 << 16 | (8 >> 3) << 17 | (64 >> 4) << 24
    k_major = 0x8400 >> 4 | 1 << 16 | (1024 >> 4) << 32 | 1 << 46 | 2 << 61
    mn_major = 0xC00 >> 4 | (16384 >> 4) << 16 | (1024 >> 4) << 32 | 1 << 46 | 2 << 61
    plain = 0x39000 >> 4 | (128 >> 4) << 16 | (256 >> 4) << 32 | 1 << 46 | 6 << 61
    assert printed.split() == [
        *(f"{value:08x}" for value in (idesc, narrow, tf32)),
        *(f"{value:016x}" for value in (k_major, mn_major, plain)),
    ]


def test_its_cubic_exponential_is_as_near_as_its_comment_says(tmp_path):
    printed = host_program(
        tmp_path,
        "softmax.cuh",
        """
        double worst = 0;
        for (int i = 0; i <= 1000000; ++i) {
          const float x = -125.0f * i / 1000000;
          worst = fmax(worst, fabs(exp2_cubic(x) / exp2((double)x) - 1));
        }
        printf("%.3g %g %g %g %g", worst, exp2_cubic(0), exp2_cubic(-127), exp2_cubic(-INFINITY),
               exp2_cubic(NAN));
        """,
    )
    worst, *values = map(float, printed.split())
    assert 0.9e-4 < worst <= 1.1e-4
    assert values == [1, 0, 0, 0]
