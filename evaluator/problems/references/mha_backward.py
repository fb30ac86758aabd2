"""Gradients of attention by cuDNN from the saved output and log-sum-exp; no dropout, no bias."""

import torch

IS_CAUSAL = False
DROPOUT = 0.0


def run(
    Q: torch.Tensor,
    K: torch.Tensor,
    V: torch.Tensor,
    O: torch.Tensor,
    dO: torch.Tensor,
    L: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    length = Q.shape[2]
    unused = torch.zeros((), dtype=torch.int64, device=Q.device)
    gradients = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        dO, Q, K, V, O, L.unsqueeze(-1), unused, unused, None, None, None,
        length, length, DROPOUT, IS_CAUSAL,
    )  # fmt: skip
    return gradients[0], gradients[1], gradients[2]
