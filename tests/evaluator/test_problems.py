"""The problem set as it is published: names, ids, sizes, work, and text that compiles."""

import subprocess
from pathlib import Path

import pytest
from tvm_ffi.libinfo import include_paths

from evaluator.problems import find_problem, load_problems, parameters, prototype
from evaluator.problems.gqa import seeded_lengths, visible_pairs
from evaluator.problems.indices import lengths_by_input
from evaluator.records import Definition, Problem, Workload, read, write

ALL = list(load_problems())
ONE_FIVE_HUNDRED = (8, 48, 34, 3, 7)
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


def changed(path: str, value: object, problem: str = "gemm_n256_k256") -> Problem:
    """A problem with one field of its JSON replaced."""
    told = find_problem(problem).model_dump(mode="json")
    *places, last = path.split(".")
    at = told
    for place in places:
        at = at[place]
    at[last] = value
    return Problem.model_validate(told)


def test_a_size_of_zero_is_refused():
    with pytest.raises(ValueError, match="A: axis 'M' is 0; a tensor must have at least one"):
        changed("workload.axes", {"M": 0, "N": 256, "K": 256})


def test_an_axis_without_a_size_is_refused():
    with pytest.raises(ValueError, match="A: axis 'M' has no size in the workload"):
        changed("workload.axes", {"N": 256, "K": 256})


@pytest.mark.parametrize("field", ["strides", "layout"])
def test_strided_tensors_are_refused_in_words(field):
    given = {"shape": ["N", "K"], "dtype": "bfloat16", field: [1, 256]}
    rule = f"B: '{field}' is not supported: tensors are row-major and contiguous; describe another"
    with pytest.raises(ValueError, match=rule):
        changed("definition.inputs.B", given)


def test_the_papers_gqa_workloads_have_its_sizes():
    ragged = find_problem("gqa_ragged_prefill_causal_h32_kv4_d128")
    prefill = find_problem("gqa_paged_prefill_causal_h24_kv8_d128_ps1")
    decode = find_problem("gqa_paged_decode_h24_kv8_d128_ps1")
    assert ragged.workload.axes == {"len_indptr": 34, "total_q": 16_294, "total_kv": 16_294}
    assert prefill.workload.axes == {
        "len_indptr": 2,
        "total_q": 892,
        "num_kv_indices": 892,
        "num_pages": 43_676,
    }
    assert decode.workload.axes == {
        "batch_size": 15,
        "num_pages": 42_784,
        "len_indptr": 16,
        "num_kv_indices": 9_625,
    }
    lengths = {one.name: lengths_by_input(one) for one in (ragged, prefill, decode)}
    assert lengths[ragged.name]["qo_indptr"] == lengths[ragged.name]["kv_indptr"]
    assert [len(lengths[ragged.name]["kv_indptr"]), sum(lengths[ragged.name]["kv_indptr"])] == [
        33,
        16_294,
    ]
    assert lengths[prefill.name] == {"qo_indptr": (892,), "kv_indptr": (892,)}
    assert len(lengths[decode.name]["kv_indptr"]) == 15
    assert sum(lengths[decode.name]["kv_indptr"]) == 9_625
    assert all(min(told) >= 1 for found in lengths.values() for told in found.values())


def test_lengths_are_the_same_for_a_name_for_ever():
    """Drawn by Python's generator, so that a Python that draws otherwise is seen here."""
    assert seeded_lengths("one", 5, 100) == ONE_FIVE_HUNDRED
    assert seeded_lengths("other", 5, 100) != ONE_FIVE_HUNDRED


def test_gqa_work_is_counted_by_visible_pairs_and_pages_in_use():
    """Decode: each of 9,625 cached tokens meets 24 heads; both caches are read where used."""
    decode = find_problem("gqa_paged_decode_h24_kv8_d128_ps1")
    assert decode.flop_count == 4 * 24 * 128 * 9_625
    queries = 15 * 24 * (2 * 2 * 128 + 4)
    assert decode.byte_count == queries + 4 * (16 + 9_625) + 2 * 9_625 * 8 * 128 * 2
    prefill = find_problem("gqa_paged_prefill_causal_h24_kv8_d128_ps1")
    assert prefill.flop_count == 4 * 24 * 128 * (892 * 893 // 2)


@pytest.mark.parametrize(
    ("queries", "keys", "pairs"),
    [((3,), (3,), 6), ((2,), (5,), 4 + 5), ((4,), (2,), 0 + 0 + 1 + 2), ((1, 2), (1, 2), 1 + 3)],
)
def test_visible_pairs_are_aligned_at_the_end(queries, keys, pairs):
    assert visible_pairs(queries, keys, causal=True) == pairs


def test_gqa_prototypes_take_integers_and_the_scale():
    problem = find_problem("gqa_paged_decode_h24_kv8_d128_ps1")
    lines = prototype(problem, "c", "cuda").splitlines()
    start = lines.index('extern "C" void run(')
    assert lines[start + 1 : start + 10] == [
        "    const __nv_bfloat16* q,",
        "    const __nv_bfloat16* k_cache,",
        "    const __nv_bfloat16* v_cache,",
        "    const int32_t* kv_indptr,",
        "    const int32_t* kv_indices,",
        "    float sm_scale,",
        "    __nv_bfloat16* output,",
        "    float* lse,",
        "    cudaStream_t stream",
    ]
    assert "#include <cstdint>" in lines
    assert "//   kv_indices: input, int32 [num_kv_indices=9625]" in lines
    assert "//   sm_scale: input, float32 scalar" in lines
    triton = prototype(problem, "c", "triton").splitlines()
    taken = "q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse"
    assert f"def run({taken}):" in triton


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


@pytest.mark.parametrize(
    "problem",
    [
        *map(find_problem, ["mha_bwd_d64_small", "gqa_paged_decode_h6_kv2_d64_ps1_small"]),
        with_scalar(),
    ],
)
def test_the_cpp_prototype_compiles_as_it_stands(problem, tmp_path):
    command = ["g++", "-std=c++17", "-Wall", "-Wno-unused-parameter", "-fsyntax-only"]
    compiles(command, prototype(problem, "c", "cpp"), tmp_path, "kernel.cpp")


@pytest.mark.slow
@pytest.mark.parametrize("binding", ["c", "tvm-ffi"])
def test_the_cuda_prototypes_compile_as_they_stand(binding, tmp_path):
    includes = [f"-I{path}" for path in include_paths()]
    command = ["nvcc", "-std=c++17", *includes, "-c", "-o", str(tmp_path / "kernel.o")]
    compiles(command, prototype(with_scalar(), binding, "cuda"), tmp_path, "kernel.cu")
