"""Grouped-query attention of one query a sequence over a paged cache, fp32; base-2 log-sum-exp."""

import math

import torch


def run(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], float("-inf"), dtype=torch.float32, device=q.device)
    group, places = q.shape[1] // k_cache.shape[2], kv_indptr.tolist()
    for s in range(q.shape[0]):
        pages = kv_indices[places[s] : places[s + 1]]
        if not len(pages):
            continue
        k, v = (cache[pages].flatten(0, 1).float().transpose(0, 1) for cache in (k_cache, v_cache))
        grouped = q[s].float().view(-1, group, q.shape[2])
        scores = grouped @ k.mT * sm_scale
        natural = torch.logsumexp(scores, dim=-1)
        weights = torch.exp(scores - natural.unsqueeze(-1))
        output[s] = (weights @ v).flatten(0, 1).to(output.dtype)
        lse[s] = natural.flatten() / math.log(2)
    return output, lse
