"""Gradients of attention from O, dO and the log-sum-exp, in fp32; runs on any device."""

import torch

IS_CAUSAL = False


def run(
    Q: torch.Tensor,
    K: torch.Tensor,
    V: torch.Tensor,
    O: torch.Tensor,
    dO: torch.Tensor,
    L: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scale = Q.shape[-1] ** -0.5
    q, k, v, o, do = (tensor.float() for tensor in (Q, K, V, O, dO))
    P = torch.exp(q @ k.mT * scale - L.unsqueeze(-1))
    if IS_CAUSAL:
        P = P.tril()
    row_sums = (do * o).sum(dim=-1, keepdim=True)
    dS = P * (do @ v.mT - row_sums) * scale
    dQ, dK, dV = dS @ k, dS.mT @ q, P.mT @ do
    return dQ.to(Q.dtype), dK.to(K.dtype), dV.to(V.dtype)
