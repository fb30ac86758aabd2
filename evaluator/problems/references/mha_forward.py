"""Attention and its log-sum-exp by cuDNN, the tuned library that is also the baseline."""

import torch

IS_CAUSAL = False
COMPUTE_LOG_SUM_EXP, DROPOUT, DEBUG_MASK = True, 0.0, False


def run(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    attention = torch.ops.aten._scaled_dot_product_cudnn_attention
    O, LSE, *_ = attention(Q, K, V, None, COMPUTE_LOG_SUM_EXP, DROPOUT, IS_CAUSAL, DEBUG_MASK)
    return O, LSE.view(Q.shape[:3])
