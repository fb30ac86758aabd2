import html

from django.test import Client

from evaluator.problems.prototypes import prototype
from evaluator.records.candidate import Binding, Language
from tests.leaderboard.reading import Page


def test_it_prints_both_prototypes_ready_to_copy(client: Client, problems):
    page = Page(client.get("/problems/gemm_n7168_k5120/"))
    record = problems["gemm_n7168_k5120"].record
    for binding in (Binding.C, Binding.TVM_FFI):
        text = prototype(record, binding, Language.CUDA)
        assert " ".join(text.split()) in page.text
        assert f"prototype-cuda-{binding.value}" in page.attributes("id")


def test_it_prints_the_host_prototype_of_a_development_twin(client: Client, problems):
    page = Page(client.get("/problems/gemm_n256_k256/"))
    text = prototype(problems["gemm_n256_k256"].record, Binding.C, Language.CPP)
    assert " ".join(text.split()) in page.text
    assert "development twin" in page.text


def test_it_prints_the_triton_prototype_and_leads_to_the_form_with_it(client: Client, problems):
    page = Page(client.get("/problems/gemm_n7168_k5120/"))
    text = prototype(problems["gemm_n7168_k5120"].record, Binding.C, Language.TRITON)
    assert " ".join(text.split()) in page.text
    assert "/submit/?problem=gemm_n7168_k5120&language=triton&binding=c" in page.attributes("href")


def test_it_states_the_base_of_its_logarithm(client: Client, problems):
    page = Page(client.get("/problems/mha_with_lse_d128/"))
    assert "LSE is in natural logarithm (base e)" in page.text


def test_it_states_sizes_tolerance_work_and_bounds(client: Client, problems):
    page = Page(client.get("/problems/gemm_n7168_k5120/"))
    assert "A input bfloat16 [M, K] 8192 × 5120" in page.text  # noqa: RUF001
    assert "C output bfloat16 [M, N] 8192 × 7168" in page.text  # noqa: RUF001
    assert "601.3 GFLOP" in page.text
    assert "0.01 + 0.01 × |ref|, every element" in page.text  # noqa: RUF001
    assert "NVIDIA H200 608.0 µs 57.23 µs" in page.text
    assert "torch.matmul(A, B.T)" in page.text


def test_it_keeps_the_reference_to_the_letter(client: Client, problems):
    for name in ("gemm_n7168_k5120", "mha_bwd_d128_causal"):
        page = Page(client.get(f"/problems/{name}/"))
        reference = problems[name].record.definition.reference
        assert " ".join(reference.split()) in page.text


def test_it_lists_every_problem_with_its_boards(client: Client, problems):
    page = Page(client.get("/problems/"))
    for name, row in problems.items():
        assert f"/problems/{name}/" in page.links()
        for target in row.targets:
            assert f"/boards/{target}/{name}/" in page.links()


def test_it_suggests_the_nearest_name(client: Client, problems):
    response = client.get("/problems/mha_bwd_d12/")
    assert response.status_code == 404
    assert "There is no problem 'mha_bwd_d12'. Did you mean 'mha_bwd_d128'?" in html.unescape(
        response.content.decode()
    )


def test_it_says_that_the_problem_set_is_not_loaded(client: Client, db):
    assert "The problem set is not loaded yet." in Page(client.get("/problems/")).text
    assert "The problem set is not loaded yet." in Page(client.get("/")).text


def test_it_tells_how_integers_are_drawn_and_which_baseline_is_taken(client: Client, problems):
    page = Page(client.get("/problems/gqa_paged_prefill_causal_h24_kv8_d128_ps1/"))
    assert "kv_indices input int32 [num_kv_indices] 892 page numbers, each below" in page.text
    assert "different numbers below num_pages, drawn anew each call" in page.text
    assert "Baseline FlashInfer flashinfer.BatchPrefillWithPagedKVCacheWrapper.run" in page.text
    assert "where FlashInfer is not installed: PyTorch's flash attention" in page.text
    ragged = Page(client.get("/problems/gqa_ragged_prefill_causal_h32_kv4_d128/"))
    assert "lengths 18, 63, 67, 90," in ragged.text
    assert "1344, 3154, in another order each call" in ragged.text


def test_it_lists_the_wrong_answers_that_were_tried(client: Client, problems):
    page = Page(client.get("/problems/gqa_paged_decode_h6_kv2_d64_ps1_small/"))
    assert "Admission 11 wrong answers tried on cpu" in page.text
    assert "lost_keys lse 42 42 " in page.text
    assert "Not tried: future_key: there is no causal mask" in page.text


def test_it_says_where_wrong_answers_were_not_tried_yet(client: Client, problems, monkeypatch):
    monkeypatch.setattr("leaderboard.views.presenters.problems.admission_of", lambda problem: None)
    page = Page(client.get("/problems/gemm_n256_k256/"))
    assert "not run at this size yet" in page.text
    assert "Wrong answers that were tried" not in page.text
