"""Grouped-query attention as it is served: ragged prefill, paged prefill and paged decode.

Source  arXiv 2608.17379 for heads, totals and cache sizes; names, axes, inputs, the causal mask's
        alignment and the log-sum-exp's base 2 are those of FlashInfer-Trace's definitions. The
        authors' sequences are not public: ours have the same number and total. Their lengths are
        the gaps between distinct cut points that Python's generator draws from the problem's
        name, and they are written down in the workload, so that they are part of its digest.

What a call may change: the order of the sequences and the pages that hold them, never the set of
lengths. So every call does the same work on other offsets and indices.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.problems.building import (
    TOLERANCE_TEXT,
    bf16,
    bytes_of,
    constants,
    fp32,
    fp32_scalar,
    int32,
    problem_of,
    reference_text,
)
from evaluator.problems.indices import distinct_input, offsets_input
from evaluator.records.flashinfer import Definition, InputSpec, ScalarInput, TensorSpec, VarAxis
from evaluator.records.problem import Baseline, Family, Problem

LSE_TEXT = "LSE of the scaled scores in base 2 (log2 of the sum of exp(score)), float32."
CAUSAL_TEXT = (
    "Mask: causal, aligned at the end of each sequence; query i of n sees keys 0 to i + m - n of m."
)
CACHE = ("num_pages", "page_size", "num_kv_heads", "head_dim")
TORCH_FALLBACK = "where FlashInfer is not installed: PyTorch's flash attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    query: int
    kv: int
    dimension: int

    @property
    def title(self) -> str:
        return f"{self.query} query and {self.kv} KV heads, head dimension {self.dimension}"

    @property
    def slug(self) -> str:
        return f"h{self.query}_kv{self.kv}_d{self.dimension}"


def gqa_problems() -> tuple[Problem, ...]:
    """The paper's three."""
    ragged = Heads(query=32, kv=4, dimension=128)
    paged = Heads(query=24, kv=8, dimension=128)
    return (
        ragged_prefill(ragged, sequences=33, tokens=16_294),
        paged_prefill(paged, query_lengths=(892,), kv_lengths=(892,), pages=43_676),
        paged_decode(paged, batch=15, indices=9_625, pages=42_784),
    )


def gqa_twins() -> tuple[Problem, ...]:
    """Small ones for CPUs; in the paged prefill queries come after keys that are cached."""
    ragged = Heads(query=4, kv=2, dimension=64)
    paged = Heads(query=6, kv=2, dimension=64)
    return (
        ragged_prefill(ragged, sequences=5, tokens=330, small=True),
        paged_prefill(
            paged, query_lengths=(70, 1, 49), kv_lengths=(131, 40, 49), pages=600, small=True
        ),
        paged_decode(paged, batch=7, indices=801, pages=1_500, small=True),
    )


def ragged_prefill(heads: Heads, *, sequences: int, tokens: int, small: bool = False) -> Problem:
    name = f"gqa_ragged_prefill_causal_{heads.slug}{_ending(small)}"
    lengths = seeded_lengths(name, sequences, tokens)
    kv = ("total_kv", "num_kv_heads", "head_dim")
    definition = _definition(
        name,
        "gqa_ragged",
        "Grouped-query attention of sequences laid end to end: sequence s has queries "
        "qo_indptr[s] to qo_indptr[s + 1] - 1 and keys kv_indptr[s] to kv_indptr[s + 1] - 1. "
        f"{CAUSAL_TEXT}",
        heads,
        variable=("len_indptr", "total_q", "total_kv"),
        inputs={
            "q": bf16("total_q", "num_qo_heads", "head_dim"),
            "k": bf16(*kv),
            "v": bf16(*kv),
            "qo_indptr": _indptr("queries"),
            "kv_indptr": _indptr("keys"),
        },
        rows="total_q",
        constraints=("total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()"),
    )
    return _problem(
        definition,
        heads,
        title=f"GQA ragged causal prefill, {sequences} sequences, {tokens} tokens",
        sizes={"len_indptr": sequences + 1, "total_q": tokens, "total_kv": tokens},
        query_lengths=lengths,
        kv_lengths=lengths,
        causal=True,
        call="flashinfer.BatchPrefillWithRaggedKVCacheWrapper.run",
        small=small,
    )


def paged_prefill(
    heads: Heads,
    *,
    query_lengths: Sequence[int],
    kv_lengths: Sequence[int],
    pages: int,
    small: bool = False,
) -> Problem:
    definition = _definition(
        f"gqa_paged_prefill_causal_{heads.slug}_ps1{_ending(small)}",
        "gqa_paged",
        "Grouped-query attention over a paged cache: sequence s has queries qo_indptr[s] to "
        "qo_indptr[s + 1] - 1, and its keys and values lie in the pages that kv_indices names at "
        f"kv_indptr[s] to kv_indptr[s + 1] - 1. {CAUSAL_TEXT}",
        heads,
        variable=("len_indptr", "total_q", "num_kv_indices", "num_pages"),
        inputs={
            "q": bf16("total_q", "num_qo_heads", "head_dim"),
            "k_cache": bf16(*CACHE),
            "v_cache": bf16(*CACHE),
            "qo_indptr": _indptr("queries"),
            "kv_indptr": _indptr("page indices"),
            "kv_indices": _page_numbers(),
        },
        rows="total_q",
        constraints=("total_q == qo_indptr[-1].item()", "num_kv_indices == kv_indptr[-1].item()"),
    )
    count, tokens, used = len(query_lengths), sum(query_lengths), sum(kv_lengths)
    return _problem(
        definition,
        heads,
        title=f"GQA paged causal prefill, {_counted(count, 'sequence')}, {tokens} tokens",
        sizes={
            "len_indptr": count + 1,
            "total_q": tokens,
            "num_kv_indices": used,
            "num_pages": pages,
        },
        query_lengths=query_lengths,
        kv_lengths=kv_lengths,
        causal=True,
        call="flashinfer.BatchPrefillWithPagedKVCacheWrapper.run",
        small=small,
    )


def paged_decode(
    heads: Heads, *, batch: int, indices: int, pages: int, small: bool = False
) -> Problem:
    name = f"gqa_paged_decode_{heads.slug}_ps1{_ending(small)}"
    definition = _definition(
        name,
        "gqa_paged",
        "Grouped-query attention of one query a sequence over a paged cache: the keys and values "
        "of sequence s lie in the pages that kv_indices names at kv_indptr[s] to "
        "kv_indptr[s + 1] - 1. Mask: none.",
        heads,
        variable=("batch_size", "num_pages", "len_indptr", "num_kv_indices"),
        inputs={
            "q": bf16("batch_size", "num_qo_heads", "head_dim"),
            "k_cache": bf16(*CACHE),
            "v_cache": bf16(*CACHE),
            "kv_indptr": _indptr("page indices"),
            "kv_indices": _page_numbers(),
        },
        rows="batch_size",
        constraints=(
            "len_indptr == batch_size + 1",
            "num_kv_indices == kv_indptr[-1].item()",
        ),
    )
    return _problem(
        definition,
        heads,
        title=f"GQA paged decode, batch {batch}, {indices} tokens cached",
        sizes={
            "batch_size": batch,
            "num_pages": pages,
            "len_indptr": batch + 1,
            "num_kv_indices": indices,
        },
        query_lengths=(1,) * batch,
        kv_lengths=seeded_lengths(name, batch, indices),
        causal=False,
        call="flashinfer.BatchDecodeWithPagedKVCacheWrapper.run",
        small=small,
    )


def seeded_lengths(name: str, count: int, total: int) -> tuple[int, ...]:
    """`count` lengths of at least 1 that sum to `total`, the same for a name for ever."""
    source = random.Random(f"ptxboard lengths of {name}")  # noqa: S311  no secret
    cuts = sorted(source.sample(range(1, total), count - 1))
    return tuple(end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True))


def visible_pairs(query_lengths: Sequence[int], kv_lengths: Sequence[int], *, causal: bool) -> int:
    """Scores that count, over all sequences, for one head."""
    pairs = 0
    for queries, keys in zip(query_lengths, kv_lengths, strict=True):
        if causal:
            pairs += sum(max(0, min(keys, row + 1 + keys - queries)) for row in range(queries))
        else:
            pairs += queries * keys
    return pairs


def _definition(
    name: str,
    op_type: str,
    description: str,
    heads: Heads,
    *,
    variable: tuple[str, ...],
    inputs: dict[str, TensorSpec],
    rows: str,
    constraints: tuple[str, ...],
) -> Definition:
    fixed = constants(num_qo_heads=heads.query, num_kv_heads=heads.kv, head_dim=heads.dimension)
    if op_type == "gqa_paged":
        fixed |= constants(page_size=1)
    stem = name.split("_h")[0].removesuffix("_causal")
    return Definition(
        name=name,
        op_type=op_type,
        description=(
            f"{description} Query head h reads KV head h * num_kv_heads / num_qo_heads, rounded "
            f"down. {LSE_TEXT} A query that sees no key has output 0 and LSE -inf. All tensors "
            f"are row-major and contiguous. {TOLERANCE_TEXT}"
        ),
        axes={**fixed, **{axis: VarAxis(type="var") for axis in variable}},
        inputs={**inputs, "sm_scale": fp32_scalar("factor of the scores, 1 / sqrt(head_dim)")},
        outputs={
            "output": bf16(rows, "num_qo_heads", "head_dim"),
            "lse": fp32(rows, "num_qo_heads", description="log-sum-exp of the scores in base 2"),
        },
        constraints=constraints,
        reference=reference_text(stem),
    )


def _problem(
    definition: Definition,
    heads: Heads,
    *,
    title: str,
    sizes: dict[str, int],
    query_lengths: Sequence[int],
    kv_lengths: Sequence[int],
    causal: bool,
    call: str,
    small: bool,
) -> Problem:
    pairs = visible_pairs(query_lengths, kv_lengths, causal=causal)
    return problem_of(
        title=f"{title}, {heads.title}" + (", small" if small else ""),
        family=Family.GQA,
        causal=causal,
        definition=definition,
        sizes=sizes,
        inputs=_index_inputs(definition, heads, query_lengths, kv_lengths),
        flop_count=4 * heads.query * heads.dimension * pairs,
        byte_count=_moved_bytes(definition, heads, sizes, sum(kv_lengths)),
        baseline=_baseline(call, small),
        small=small,
    )


def _index_inputs(
    definition: Definition, heads: Heads, query_lengths: Sequence[int], kv_lengths: Sequence[int]
) -> dict[str, InputSpec]:
    told: dict[str, InputSpec] = {
        "qo_indptr": offsets_input(query_lengths),
        "kv_indptr": offsets_input(kv_lengths),
        "kv_indices": distinct_input("num_pages"),
        "sm_scale": ScalarInput(type="scalar", value=heads.dimension**-0.5),
    }
    return {name: told[name] for name in definition.inputs if name in told}


def _moved_bytes(
    definition: Definition, heads: Heads, sizes: dict[str, int], kv_tokens: int
) -> int:
    """Of a cache only the pages in use are moved."""
    constant = {name: axis.value for name, axis in definition.axes.items() if axis.type == "const"}
    caches = ("k", "v", "k_cache", "v_cache")
    others = bytes_of(definition, {**sizes, **constant}, without=caches)
    return others + 2 * kv_tokens * heads.kv * heads.dimension * 2


def _baseline(call: str, small: bool) -> Baseline:
    if small:
        return Baseline(name="torch", call="the reference itself")
    return Baseline(name="FlashInfer", call=f"{call}, planned before the call; {TORCH_FALLBACK}")


def _indptr(what: str) -> TensorSpec:
    text = f"where each sequence's {what} begin, and where the last one's end"
    return int32("len_indptr", description=text)


def _page_numbers() -> TensorSpec:
    return int32("num_kv_indices", description="page numbers, each below num_pages, no two alike")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _ending(small: bool) -> str:
    return "_small" if small else ""
