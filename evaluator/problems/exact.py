"""The outputs in fp32, before any rounding to their dtypes; also with a slip, for wrong answers.

In      a Problem, its inputs by name; a Slip
Out     fp32 tensors by output name
Raises  EvaluatorFault: a slip was asked of a family that has none
Source  the definitions' formulas, written apart from the references so that each checks the other

Works head by head and in blocks of MAX_SCORES scores: beside the fp32 outputs it holds less than
1 GiB. TF32 is off while it runs.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from evaluator.problems.tensors import Tensors, reference
from evaluator.records.problem import Family, Problem
from evaluator.records.verdicts import EvaluatorFault

MAX_SCORES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """What an author gets wrong by one: `future_keys` are seen beyond the causal mask; the last
    `lost_keys` keys (of each sequence; columns of a GEMM's inputs) are left out.
    """

    future_keys: int = 0
    lost_keys: int = 0

    def kept(self, count: int) -> int:
        """At least half stays, so that a short sequence loses a tail and not all."""
        return count - min(self.lost_keys, count // 2)


NO_SLIP = Slip()
Compute = Callable[[Problem, Mapping[str, torch.Tensor], Slip], Tensors]


def fp32_reference(
    problem: Problem, inputs: Mapping[str, torch.Tensor], slip: Slip = NO_SLIP
) -> Tensors:
    compute = COMPUTE.get(problem.family, _other)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.no_grad():
            return compute(problem, inputs, slip)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def has_slips(problem: Problem) -> bool:
    return problem.family in COMPUTE


def _gemm(problem: Problem, inputs: Mapping[str, torch.Tensor], slip: Slip) -> Tensors:
    columns = slip.kept(inputs["A"].shape[1])
    left, right = inputs["A"][:, :columns], inputs["B"][:, :columns].float()
    out = torch.empty(left.shape[0], right.shape[0], dtype=torch.float32, device=left.device)
    for rows in _blocks(left.shape[0], columns):
        torch.matmul(left[rows].float(), right.T, out=out[rows])
    return {"C": out}


def _forward(problem: Problem, inputs: Mapping[str, torch.Tensor], slip: Slip) -> Tensors:
    given = inputs["Q"]
    out = torch.empty_like(given, dtype=torch.float32)
    lse = torch.empty(given.shape[:3], dtype=torch.float32, device=given.device)
    for b, h in _heads(given):
        head = _Head(
            q=given[b, h].float(),
            k=inputs["K"][b, h].float(),
            v=inputs["V"][b, h].float(),
            scale=given.shape[-1] ** -0.5,
            causal=problem.causal,
            slip=slip,
        )
        head.attend(out[b, h], lse[b, h])
    return {"O": out, "LSE": lse}


def _backward(problem: Problem, inputs: Mapping[str, torch.Tensor], slip: Slip) -> Tensors:
    out = {name: torch.zeros_like(inputs["Q"], dtype=torch.float32) for name in ("dQ", "dK", "dV")}
    for b, h in _heads(inputs["Q"]):
        q, k, v, o, do = (inputs[name][b, h].float() for name in ("Q", "K", "V", "O", "dO"))
        scale = q.shape[1] ** -0.5
        head = _Head(q=q, k=k, v=v, scale=scale, causal=problem.causal, slip=slip)
        for rows in head.blocks():
            p = head.scores(rows).sub_(inputs["L"][b, h, rows].unsqueeze(-1)).exp_()
            out["dV"][b, h, : head.key_count] += p.T @ do[rows]
            row_sums = (do[rows] * o[rows]).sum(dim=-1, keepdim=True)
            ds = p.mul_((do[rows] @ head.kept(v).T).sub_(row_sums)).mul_(scale)
            out["dQ"][b, h, rows] = ds @ head.kept(k)
            out["dK"][b, h, : head.key_count] += ds.T @ q[rows]
    return out


def _grouped(problem: Problem, inputs: Mapping[str, torch.Tensor], slip: Slip) -> Tensors:
    given = inputs["q"]
    out = torch.empty_like(given, dtype=torch.float32)
    lse = torch.empty(given.shape[:2], dtype=torch.float32, device=given.device)
    for rows, k, v in _sequences(inputs):
        group = given.shape[1] // k.shape[1]
        for h in range(given.shape[1]):
            head = _Head(
                q=given[rows, h].float(),
                k=k[:, h // group].float(),
                v=v[:, h // group].float(),
                scale=float(inputs["sm_scale"]),
                causal=problem.causal,
                slip=slip,
            )
            head.attend(out[rows, h], lse[rows, h])
    return {"output": out, "lse": lse.div_(math.log(2))}


def _sequences(
    inputs: Mapping[str, torch.Tensor],
) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
    """Rows of q, keys and values of each sequence; without qo_indptr each has one row."""
    ends = inputs["kv_indptr"].tolist()
    rows = inputs["qo_indptr"].tolist() if "qo_indptr" in inputs else list(range(len(ends)))
    for s in range(len(ends) - 1):
        places = slice(ends[s], ends[s + 1])
        if "kv_indices" in inputs:
            pages = inputs["kv_indices"][places]
            k, v = (inputs[name][pages].flatten(0, 1) for name in ("k_cache", "v_cache"))
        else:
            k, v = inputs["k"][places], inputs["v"][places]
        yield slice(rows[s], rows[s + 1]), k, v


def _other(problem: Problem, inputs: Mapping[str, torch.Tensor], slip: Slip) -> Tensors:
    if slip != NO_SLIP:
        raise EvaluatorFault(f"{problem.name}: family {problem.family.value!r} has no slips")
    floats = {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in inputs.items()
    }
    return {name: tensor.float() for name, tensor in reference(problem)(**floats).items()}


COMPUTE: dict[Family, Compute] = {
    Family.GEMM: _gemm,
    Family.MHA_FORWARD: _forward,
    Family.MHA_BACKWARD: _backward,
    Family.GQA: _grouped,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """One head of one sequence: q [n, d]; k and v [m, d]; the mask ends where the keys end."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    scale: float
    causal: bool
    slip: Slip

    @property
    def key_count(self) -> int:
        return self.slip.kept(self.k.shape[0])

    def kept(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor[: self.key_count]

    def blocks(self) -> Iterator[slice]:
        return _blocks(self.q.shape[0], self.key_count)

    def scores(self, rows: slice) -> torch.Tensor:
        scores = (self.q[rows] @ self.kept(self.k).T).mul_(self.scale)
        if self.causal:
            shift = self.k.shape[0] - self.q.shape[0] + self.slip.future_keys
            keys = torch.arange(self.key_count, device=scores.device)
            queries = torch.arange(rows.start, rows.stop, device=scores.device).unsqueeze(-1)
            scores.masked_fill_(keys > queries + shift, float("-inf"))
        return scores

    def attend(self, out: torch.Tensor, lse: torch.Tensor) -> None:
        """A row without keys gets 0 and -inf."""
        for rows in self.blocks():
            scores = self.scores(rows)
            lse[rows] = torch.logsumexp(scores, dim=-1)
            out[rows] = torch.softmax(scores, dim=-1).nan_to_num_(0.0) @ self.kept(self.v)


def _heads(tensor: torch.Tensor) -> Iterator[tuple[int, int]]:
    for b in range(tensor.shape[0]):
        for h in range(tensor.shape[1]):
            yield b, h


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, MAX_SCORES // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
