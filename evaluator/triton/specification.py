"""What the tracer is told of a candidate, and which tracer it is; both decide what is built."""

import hashlib
import json
from functools import cache
from pathlib import Path

import evaluator.triton.tracer
from evaluator.problems.prototypes import parameters
from evaluator.records.flashinfer import DType, ScalarInput
from evaluator.records.verdicts import EvaluatorFault
from evaluator.work import Work

TRACER_FOLDER = Path(evaluator.triton.tracer.__file__).resolve().parent


def specification(work: Work) -> str:
    """What the tracer is told, as canonical JSON: source, entry, device and parameters."""
    assert work.target.gencode is not None
    capability = int(work.target.gencode.split("sm_")[-1].rstrip("a"))
    given = [
        {
            "name": one.name,
            "dtype": one.dtype.value,
            "shape": None if one.is_scalar else list(one.shape),
            "value": _scalar(work, one.name) if one.is_scalar else None,
        }
        for one in parameters(work.problem)
    ]
    if any(one["dtype"] == DType.FLOAT4_E2M1.value for one in given):
        raise EvaluatorFault("float4_e2m1 tensors have no stand-in for Triton yet")
    device = {
        "name": work.target.title,
        "major": capability // 10,
        "minor": capability % 10,
        "multi_processor_count": work.target.multiprocessors,
    }
    told = {
        "source": work.candidate.entry_file,
        "entry": work.candidate.entry_symbol,
        "device": device,
        "parameters": given,
    }
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def _scalar(work: Work, name: str) -> float | int | bool:
    source = work.problem.workload.inputs.get(name)
    if not isinstance(source, ScalarInput):
        raise EvaluatorFault(f"scalar input {name!r} has no value in the workload")
    return source.value


@cache
def tracer_digest() -> str:
    """Of the tracer's own files: another tracer may record other launches."""
    digest = hashlib.sha256()
    for path in sorted(TRACER_FOLDER.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
