"""What a submission's page shows of a Triton build: traced launches, cubins, imported modules."""

from types import SimpleNamespace

from django.template.loader import render_to_string

from evaluator.records.evidence import KernelLaunch, KernelResources, PolicyEvidence
from tests.leaderboard.factories import SHA, compilation

TIMES = " \N{MULTIPLICATION SIGN} "


def shown(template: str, evidence: object, language: str = "triton") -> str:
    view = SimpleNamespace(artifacts=(), submission=SimpleNamespace(language=language))
    html = render_to_string(f"leaderboard/stages/{template}", {"evidence": evidence, "view": view})
    return " ".join(html.split())


def test_traced_launches_and_the_digest_of_each_cubin_are_shown():
    _, _, evidence = compilation("h200")
    kernel = KernelResources(
        name="gemm", registers=154, dynamic_shared_bytes=196640, cubin_sha256=SHA
    )
    launch = KernelLaunch(kind="kernel", name="gemm", grid=(1792, 1, 1), block=(256, 1, 1), count=3)
    traced = evidence.model_copy(update={"kernels": (kernel,), "launches": (launch,)})
    html = shown("compilation.html", traced)
    for sizes in (("1792", "1", "1"), ("256", "1", "1")):
        assert f'<td class="num">{TIMES.join(sizes)}</td>' in html
    assert '<td class="num">3</td></tr>' in html
    assert "of dynamic shared memory" in html
    assert SHA[:12] in html


def test_a_build_of_cuda_shows_no_launches():
    assert "Traced launches" not in shown("compilation.html", compilation("h200")[2], "cuda")


def test_the_policy_counts_modules_for_triton_and_headers_for_cuda():
    evidence = PolicyEvidence(command=("python",), header_count=3)
    assert "<dt>Modules imported</dt><dd>3</dd>" in shown("policy.html", evidence)
    assert "<dt>Headers opened</dt><dd>3</dd>" in shown("policy.html", evidence, "cuda")
