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
