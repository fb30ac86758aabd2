"""Causal grouped-query attention over a paged cache in fp32; log-sum-exp in base 2."""

import math

import torch


def run(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], float("-inf"), dtype=torch.float32, device=q.device)
    queries, places = qo_indptr.tolist(), kv_indptr.tolist()
    for s in range(len(queries) - 1):
        mine, pages = slice(queries[s], queries[s + 1]), kv_indices[places[s] : places[s + 1]]
        k, v = (cache[pages].flatten(0, 1) for cache in (k_cache, v_cache))
        attend(q[mine], k, v, sm_scale, output[mine], lse[mine])
    return output, lse


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sm_scale: torch.Tensor,
    output: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    """One sequence: q [n, heads, d]; k and v [m, kv heads, d]; query i sees keys to i + m - n."""
    n, m, group = q.shape[0], k.shape[0], q.shape[1] // k.shape[1]
    later = torch.ones(n, m, dtype=torch.bool, device=q.device).triu(1 + m - n)
    for head in range(k.shape[1]):
        heads = slice(head * group, (head + 1) * group)
        scores = q[:, heads].float().transpose(0, 1) @ k[:, head].float().T * sm_scale
        scores = scores.masked_fill(later, float("-inf"))
        natural = torch.logsumexp(scores, dim=-1)
        finite = natural.clamp(min=torch.finfo(torch.float32).min)
        weights = torch.exp(scores - finite.unsqueeze(-1))
        output[:, heads] = (weights @ v[:, head].float()).transpose(0, 1).to(output.dtype)
        lse[:, heads] = natural.T / math.log(2)
