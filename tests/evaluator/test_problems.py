"""The problem set as it is published: names, ids, sizes, work, and text that compiles."""

import subprocess
from pathlib import Path

import pytest
from tvm_ffi.libinfo import include_paths

from evaluator.problems import find_problem, load_problems, parameters, prototype
from evaluator.records import Definition, Problem, Workload, read, write

ALL = list(load_problems())
PAPER = [
    "gemm_n7168_k5120",
    "mha_with_lse_d128",
    "mha_with_lse_d128_causal",
    "mha_bwd_d128",
    "mha_bwd_d128_causal",
]


def test_the_papers_five_come_first():
    assert ALL[:5] == PAPER


def test_it_holds_the_relatives_and_the_twins():
    attention = [
        f"{stem}_d{dimension}{mask}"
        for dimension in (64, 96)
        for stem in ("mha_with_lse", "mha_bwd")
        for mask in ("", "_causal")
    ]
    gqa = [
        "gqa_ragged_prefill_causal_h32_kv4_d128",
        "gqa_paged_prefill_causal_h24_kv8_d128_ps1",
        "gqa_paged_decode_h24_kv8_d128_ps1",
    ]
    twins = [
        "gemm_n256_k256",
        "mha_with_lse_d64_small",
        "mha_with_lse_d64_causal_small",
        "mha_bwd_d64_small",
        "mha_bwd_d64_causal_small",
        "gqa_ragged_prefill_causal_h4_kv2_d64_small",
        "gqa_paged_prefill_causal_h6_kv2_d64_ps1_small",
        "gqa_paged_decode_h6_kv2_d64_ps1_small",
    ]
    assert ALL[5:] == attention + gqa + twins


@pytest.mark.parametrize(
    ("name", "uuid"),
    [
        ("gemm_n7168_k5120", "94920358-01a8-4c5b-9209-3103fd490e94"),
        ("mha_with_lse_d128", "bc38b351-d595-451b-9153-8e225702e53b"),
        ("mha_with_lse_d128_causal", "6d2f67a7-225a-4af5-87d3-cbb99b496325"),
        ("mha_bwd_d128", "38c3b07c-f006-5f5e-9860-ba214c805a6b"),
        ("mha_bwd_d128_causal", "c119b3f0-c051-5e96-9c2a-2268d992fe1a"),
    ],
)
def test_the_papers_workloads_have_the_authors_ids(name, uuid):
    assert find_problem(name).workload.uuid == uuid


def test_no_two_workloads_share_an_id():
    assert len({problem.workload.uuid for problem in load_problems().values()}) == len(ALL)


@pytest.mark.parametrize(
    ("name", "flop_count", "byte_count"),
    [
        ("gemm_n7168_k5120", 2 * 8192 * 7168 * 5120, 2 * (8192 * 5120 + 7168 * 5120 + 8192 * 7168)),
        ("mha_with_lse_d128", 4 * 4 * 48 * 4096**2 * 128, 4 * 48 * 4096 * (4 * 2 * 128 + 4)),
        ("mha_with_lse_d128_causal", 2 * 4 * 48 * 4096**2 * 128, 4 * 48 * 4096 * (4 * 256 + 4)),
        ("mha_bwd_d128", 10 * 4 * 48 * 4096**2 * 128, 4 * 48 * 4096 * (8 * 2 * 128 + 4)),
        ("mha_bwd_d96_causal", 5 * 4 * 48 * 4096**2 * 96, 4 * 48 * 4096 * (8 * 2 * 96 + 4)),
        ("mha_with_lse_d64_small", 4 * 2 * 256**2 * 64, 2 * 256 * (4 * 2 * 64 + 4)),
    ],
)
def test_its_work_is_counted_as_the_paper_counts_it(name, flop_count, byte_count):
    problem = find_problem(name)
    assert (problem.flop_count, problem.byte_count) == (flop_count, byte_count)


@pytest.mark.parametrize("name", ALL)
def test_a_description_states_base_mask_layout_and_tolerance(name):
    problem = find_problem(name)
    text = problem.definition.description
    assert "|out - ref| <= 0.01 + 0.01 * |ref|" in text
    assert "row-major and contiguous" in text
    if "gqa" in name:
        assert "LSE of the scaled scores in base 2" in text
    if "mha" in name:
        assert "natural logarithm (base e)" in text
        assert ("causal" in text) is problem.causal
        assert problem.causal is ("causal" in name)


@pytest.mark.parametrize("name", ALL)
def test_a_problem_is_whole_and_its_definition_reads_as_flashinfers(name):
    problem = find_problem(name)
    assert read(Definition, write(problem.definition)) == problem.definition
    assert read(Workload, write(problem.workload)) == problem.workload
    assert problem.name == problem.definition.name
    small = problem.targets != ("h200", "h100", "b200")
    assert problem.development is small
    assert ("host" in problem.targets) is small


def test_the_causal_reference_differs_in_its_mask_only():
    plain = find_problem("mha_bwd_d128").definition.reference
    causal = find_problem("mha_bwd_d128_causal").definition.reference
    assert causal == plain.replace("IS_CAUSAL = False", "IS_CAUSAL = True")
    assert causal != plain


def test_an_unknown_name_gets_its_neighbours_or_all_names():
    with pytest.raises(KeyError, match=r"'mha_with_lse_d129' is not known; did you mean .*d128"):
        find_problem("mha_with_lse_d129")
    with pytest.raises(KeyError, match=r"known problems: gemm_n7168_k5120, mha_with_lse_d128"):
        find_problem("convolution")


def test_what_a_caller_does_to_the_dict_is_not_seen_by_others():
    load_problems().clear()
    assert list(load_problems()) == ALL


def test_parameters_come_in_call_order_with_shapes():
    seen = parameters(find_problem("mha_bwd_d64_small"))
    assert [item.name for item in seen] == ["Q", "K", "V", "O", "dO", "L", "dQ", "dK", "dV"]
    assert [item.is_output for item in seen] == [False] * 6 + [True] * 3
    assert seen[0].shape == (1, 2, 256, 64)
    assert (seen[5].shape, seen[5].dtype) == ((1, 2, 256), "float32")
    assert not any(item.is_scalar for item in seen)


def with_scalar():
    """The small GEMM with a scalar between its tensors."""
    value = find_problem("gemm_n256_k256").model_dump(mode="json")
    value["definition"]["inputs"] = {
        "A": value["definition"]["inputs"]["A"],
        "alpha": {"shape": None, "dtype": "float32"},
        "B": value["definition"]["inputs"]["B"],
    }
    value["call_order"] = ["A", "alpha", "B", "C"]
    value["workload"]["inputs"]["alpha"] = {"type": "scalar", "value": 2.0}
    return Problem.model_validate(value)


def test_a_scalar_goes_by_value():
    problem = with_scalar()
    assert parameters(problem)[1].is_scalar
    assert "    float alpha," in prototype(problem, "c", "cuda").splitlines()
    assert "    float alpha," in prototype(problem, "tvm-ffi", "cuda").splitlines()


def test_the_cuda_prototype_is_typed_and_takes_a_stream():
    lines = prototype(find_problem("mha_with_lse_d128"), "c", "cuda").splitlines()
    start = lines.index('extern "C" void run(')
    assert lines[start + 1 : start + 8] == [
        "    const __nv_bfloat16* Q,",
        "    const __nv_bfloat16* K,",
        "    const __nv_bfloat16* V,",
        "    __nv_bfloat16* O,",
        "    float* LSE,",
        "    cudaStream_t stream",
        ") {",
    ]
    assert "//   LSE: output, float32 [B=4, H=48, S=4096]" in lines


def test_the_cpp_prototype_takes_bf16_as_uint16_and_no_stream():
    text = prototype(find_problem("gemm_n256_k256"), "c", "cpp")
    assert "    const uint16_t* A,\n    const uint16_t* B,\n    uint16_t* C\n) {" in text
    assert "stream" not in text
    assert "cuda" not in text


def test_tvm_ffi_on_the_host_is_refused():
    with pytest.raises(ValueError, match="'tvm-ffi' is for language 'cuda'; seen: 'cpp'"):
        prototype(find_problem("gemm_n256_k256"), "tvm-ffi", "cpp")


def compiles(command, text, tmp_path: Path, name):
    source = tmp_path / name
    source.write_text(text)
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("problem", [*map(find_problem, ["mha_bwd_d64_small"]), with_scalar()])
def test_the_cpp_prototype_compiles_as_it_stands(problem, tmp_path):
    command = ["g++", "-std=c++17", "-Wall", "-Wno-unused-parameter", "-fsyntax-only"]
    compiles(command, prototype(problem, "c", "cpp"), tmp_path, "kernel.cpp")


@pytest.mark.slow
@pytest.mark.parametrize("binding", ["c", "tvm-ffi"])
def test_the_cuda_prototypes_compile_as_they_stand(binding, tmp_path):
    includes = [f"-I{path}" for path in include_paths()]
    command = ["nvcc", "-std=c++17", *includes, "-c", "-o", str(tmp_path / "kernel.o")]
    compiles(command, prototype(with_scalar(), binding, "cuda"), tmp_path, "kernel.cu")
