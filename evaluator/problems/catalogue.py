"""Builds the problems: names, shapes and workload ids are the PTXBench authors', the text ours.

Source  arXiv 2608.17379 for the operators and sizes; the ids of the workloads are those in the
        authors' repository (zhang677/PTXBench, the problem lists of each task family), so that
        results can be matched. Their backward inputs are fixed files; ours are drawn for each
        trial, with O and L from a forward pass of the same Q, K and V.
"""

from dataclasses import dataclass

from evaluator.problems.building import (
    TOLERANCE_TEXT,
    bf16,
    constants,
    fp32,
    problem_of,
    reference_text,
)
from evaluator.problems.gqa import gqa_problems, gqa_twins
from evaluator.records.flashinfer import ConstAxis, Definition, VarAxis
from evaluator.records.problem import Baseline, Family, Problem

AUTHORS_WORKLOADS = {
    "gemm_n7168_k5120": "94920358-01a8-4c5b-9209-3103fd490e94",
    "mha_with_lse_d128": "bc38b351-d595-451b-9153-8e225702e53b",
    "mha_with_lse_d128_causal": "6d2f67a7-225a-4af5-87d3-cbb99b496325",
    "mha_bwd_d128": "38c3b07c-f006-5f5e-9860-ba214c805a6b",
    "mha_bwd_d128_causal": "c119b3f0-c051-5e96-9c2a-2268d992fe1a",
    "mha_with_lse_d64": "7d2575a0-bcc2-42a0-812f-6a7e9a57d97f",
    "mha_with_lse_d64_causal": "b69f7675-568f-40f2-9a4b-8bbe374b4a59",
    "mha_bwd_d64": "d3bcb902-6a13-5ada-9251-fa841b10cd0b",
    "mha_bwd_d64_causal": "5799ea50-77aa-56cb-9f62-a4c1f5473770",
    "mha_with_lse_d96": "e86112ff-2cd0-4e97-8efb-9ce6356ecb2b",
    "mha_with_lse_d96_causal": "982c9922-961f-452f-ab9e-574fdcd4e28c",
    "mha_bwd_d96": "082481a9-4a67-5c62-8093-560bb80e4c24",
    "mha_bwd_d96_causal": "3a45eb5c-3362-5705-bd42-80324d26a471",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSize:
    batch: int
    heads: int
    length: int
    head_dimension: int


PAPER = {
    dimension: AttentionSize(batch=4, heads=48, length=4096, head_dimension=dimension)
    for dimension in (128, 64, 96)
}
SMALL = AttentionSize(batch=1, heads=2, length=256, head_dimension=64)


def build_catalogue() -> tuple[Problem, ...]:
    """Every problem, the paper's five first."""
    full = [
        build(size, causal)
        for size in PAPER.values()
        for build in (forward, backward)
        for causal in (False, True)
    ]
    twins = [
        build(SMALL, causal, small=True)
        for build in (forward, backward)
        for causal in (False, True)
    ]
    return (
        gemm(8192, 7168, 5120),
        *full,
        *gqa_problems(),
        gemm(256, 256, 256, small=True),
        *twins,
        *gqa_twins(),
    )


def gemm(m: int, n: int, k: int, *, small: bool = False) -> Problem:
    name = f"gemm_n{n}_k{k}"
    description = (
        "Matrix product C = A B^T. A is [M, K], B is [N, K] and C is [M, N], all bfloat16, "
        f"row-major and contiguous; sums in fp32. No mask. {TOLERANCE_TEXT}"
    )
    definition = Definition(
        name=name,
        op_type="gemm",
        description=description,
        axes={"M": VarAxis(type="var"), **constants(N=n, K=k)},
        inputs={"A": bf16("M", "K"), "B": bf16("N", "K")},
        outputs={"C": bf16("M", "N")},
        reference=reference_text("gemm"),
    )
    return problem_of(
        title=f"GEMM {m} x {n} x {k}",
        family=Family.GEMM,
        definition=definition,
        sizes={"M": m, "N": n, "K": k},
        flop_count=2 * m * n * k,
        baseline=Baseline(name="torch" if small else "cuBLAS", call="torch.matmul(A, B.T)"),
        small=small,
        workload_id=AUTHORS_WORKLOADS.get(definition.name),
    )


def forward(size: AttentionSize, causal: bool, *, small: bool = False) -> Problem:
    description = (
        "Attention forward: O = softmax(Q K^T / sqrt(D)) V and the log-sum-exp of the scaled "
        "scores, LSE = log(sum(exp(Q K^T / sqrt(D)))). LSE is in natural logarithm (base e), "
        f"float32, [B, H, S]. Q, K, V and O are bfloat16, [B, H, S, D], row-major and contiguous. "
        f"{_mask(causal)} {TOLERANCE_TEXT}"
    )
    definition = Definition(
        name=_attention_name("mha_with_lse", size, causal, small),
        op_type="attention",
        description=description,
        axes=_attention_axes(size, "D"),
        inputs={name: bf16("B", "H", "S", "D") for name in ("Q", "K", "V")},
        outputs={"O": bf16("B", "H", "S", "D"), "LSE": fp32("B", "H", "S")},
        reference=reference_text("mha_forward_plain" if small else "mha_forward", causal=causal),
    )
    return problem_of(
        title=_attention_title("MHA forward", size, causal, small),
        family=Family.MHA_FORWARD,
        causal=causal,
        definition=definition,
        sizes=_attention_sizes(size, "D"),
        flop_count=_attention_flop_count(4, size, causal),
        baseline=_attention_baseline("_scaled_dot_product_cudnn_attention", small),
        small=small,
        workload_id=AUTHORS_WORKLOADS.get(definition.name),
    )


def backward(size: AttentionSize, causal: bool, *, small: bool = False) -> Problem:
    description = (
        "Attention backward: dQ, dK and dV of O = softmax(Q K^T / sqrt(d)) V for a given dO. "
        "L is the forward pass's log-sum-exp of the scaled scores in natural logarithm (base e), "
        "float32, [B, H, S]; O and L belong to the given Q, K and V. All others are bfloat16, "
        f"[B, H, S, d], row-major and contiguous. {_mask(causal)} {TOLERANCE_TEXT}"
    )
    tensor = bf16("B", "H", "S", "d")
    definition = Definition(
        name=_attention_name("mha_bwd", size, causal, small),
        op_type="attention",
        description=description,
        axes=_attention_axes(size, "d"),
        inputs={
            **{name: tensor for name in ("Q", "K", "V", "O", "dO")},
            "L": fp32("B", "H", "S"),
        },
        outputs={name: tensor for name in ("dQ", "dK", "dV")},
        reference=reference_text("mha_backward_plain" if small else "mha_backward", causal=causal),
    )
    return problem_of(
        title=_attention_title("MHA backward", size, causal, small),
        family=Family.MHA_BACKWARD,
        causal=causal,
        definition=definition,
        sizes=_attention_sizes(size, "d"),
        flop_count=_attention_flop_count(10, size, causal),
        baseline=_attention_baseline("_scaled_dot_product_cudnn_attention_backward", small),
        small=small,
        workload_id=AUTHORS_WORKLOADS.get(definition.name),
    )


def forward_reference(*, causal: bool, plain: bool) -> str:
    """The text of a forward pass: backward inputs need one that their definition does not hold."""
    return reference_text("mha_forward_plain" if plain else "mha_forward", causal=causal)


def _attention_flop_count(per_score: int, size: AttentionSize, causal: bool) -> int:
    """4 (forward) or 10 (backward) times B H S^2 D, half of it under a causal mask."""
    scores = size.batch * size.heads * size.length**2
    return per_score * scores * size.head_dimension // (2 if causal else 1)


def _attention_name(stem: str, size: AttentionSize, causal: bool, small: bool) -> str:
    ending = ("_causal" if causal else "") + ("_small" if small else "")
    return f"{stem}_d{size.head_dimension}{ending}"


def _attention_title(stem: str, size: AttentionSize, causal: bool, small: bool) -> str:
    causal_text = ", causal" if causal else ""
    small_text = ", small" if small else ""
    return f"{stem}, head dimension {size.head_dimension}{causal_text}{small_text}"


def _attention_axes(size: AttentionSize, dimension: str) -> dict[str, ConstAxis | VarAxis]:
    fixed = constants(B=size.batch, H=size.heads, **{dimension: size.head_dimension})
    return {**fixed, "S": VarAxis(type="var")}


def _attention_sizes(size: AttentionSize, dimension: str) -> dict[str, int]:
    sizes = {"B": size.batch, "H": size.heads, "S": size.length}
    return {**sizes, dimension: size.head_dimension}


def _attention_baseline(call: str, small: bool) -> Baseline:
    if small:
        return Baseline(name="torch", call="the reference itself")
    return Baseline(name="cuDNN", call=f"torch.ops.aten.{call}")


def _mask(causal: bool) -> str:
    if causal:
        return "Mask: causal; query i sees keys 0 to i (lower triangle, diagonal included)."
    return "Mask: none."
