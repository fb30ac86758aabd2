"""What a Triton source may say: read, not run; each refusal has its line and what is offered."""

import pytest

from evaluator.triton.tracer.rules import ENTRY, LIBRARY, SYNTAX, UNAVAILABLE, read

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    tl.store(y + at, tl.load(x + at) * 2)


"""
RUN = "def run(A, B, C):\n    scale[(1,)](A, C, COUNT=16)\n"


def findings(text: str):
    return [(one.kind, one.line, one.text) for one in read(text, "run", ["A", "B", "C"]).findings]


def one_finding(text: str):
    [found] = findings(text)
    return found


def test_an_honest_source_has_no_finding_and_its_imports_are_told():
    reading = read(KERNEL + RUN, "run", ["A", "B", "C"])
    assert reading.findings == ()
    assert reading.imports == ("torch", "triton", "triton.language")


@pytest.mark.parametrize(
    "line",
    [
        "from __future__ import annotations",
        "import math, functools, itertools, operator, enum, dataclasses, typing",
        "from triton import language as tl2, cdiv",
        "from triton.language.extra import libdevice",
        "from triton.language.extra.cuda import gdc_wait",
        "from triton.tools.tensor_descriptor import TensorDescriptor",
        "from triton.runtime import driver",
        "from torch import Tensor, empty_like, bfloat16",
        "SHAPE: 'tuple[int, ...]' = (1, 2)",
        "x = lambda meta: (triton.cdiv(5, meta['B']),)",
        "WORDS = 'torch.matmul(A, B) and open(it)'  # torch.mm",
        "def scratch(A): return torch.zeros_like(A, dtype=torch.float32)",
        "COUNT = torch.cuda.get_device_properties(torch.cuda.current_device())",
        "if __name__ == '__main__': pass",
    ],
)
def test_what_is_offered_passes(line):
    assert findings(KERNEL + line + "\n" + RUN) == []


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("def go(A, B): return torch.matmul(A, B)", "torch.matmul"),
        ("def go(A, B): return torch.nn.functional.linear(A, B)", "torch.nn.functional.linear"),
        ("def go(A, B): return torch.ops.aten.mm(A, B)", "torch.ops.aten.mm"),
        ("import torch.nn.functional as F", "import of torch.nn.functional"),
        ("from torch import matmul as product", "torch.matmul"),
        ("from torch.nn import functional", "torch.nn.functional"),
        ("import torch as t; product = t.mm", "torch.mm"),
        ("import cupy", "import of cupy"),
        ("import flash_attn.flash_attn_interface", "import of flash_attn"),
        ("from flashinfer import single_prefill_with_kv_cache", "import of flashinfer"),
        ("def go(A, B): return A @ B", "matrix product @"),
        ("def go(A, B): return A.matmul(B)", ".matmul() on a tensor"),
        ("def go(A): return A.softmax(-1)", ".softmax() on a tensor"),
    ],
)
def test_library_work_is_found_with_its_line(line, named):
    kind, number, text = one_finding(KERNEL + line + "\n" + RUN)
    assert (kind, number) == (LIBRARY, 12)
    assert text.startswith(named)
    assert "no library does the work here" in text


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import os", "import of os"),
        ("import ctypes", "import of ctypes"),
        ("from subprocess import run as go", "import of subprocess"),
        ("import numpy as np", "import of numpy"),
        ("graph = torch.cuda.CUDAGraph", "torch.cuda.CUDAGraph"),
        ("least = torch.finfo(torch.float32).min", "torch.finfo"),
        ("import triton.testing", "import of triton.testing"),
        ("from triton.experimental import gluon", "import of triton.experimental"),
        ("from triton import experimental", "import of triton.experimental"),
        ("from . import tiles", "relative import"),
        ("text = open('/etc/passwd')", "open"),
        ("value = eval('1')", "eval"),
        ("x = getattr(triton, 'jit')", "getattr"),
        ("x = [].__class__.__base__", ".__base__"),
        ("__builtins__", "__builtins__"),
    ],
)
def test_what_a_kernel_does_not_need_is_refused_with_its_line(line, named):
    found = findings(KERNEL + line + "\n" + RUN)
    kind, number, text = found[0]
    assert (kind, number) == (UNAVAILABLE, 12)
    assert text.startswith(named)


def test_a_kernel_may_use_its_own_operators_and_names():
    body = "    p = tl.dot(x, y) @ y\n    q = x.softmax()\n    return p\n"
    assert findings(KERNEL + "@triton.jit\ndef inner(x, y):\n" + body + RUN) == []
    assert findings(KERNEL + "@triton.jit(noinline=True)\ndef inner(x, y):\n" + body + RUN) == []


def test_a_missing_entry_point_names_what_is_wanted():
    kind, line, text = one_finding(KERNEL)
    assert (kind, line) == (ENTRY, 1)
    assert text == "the source defines no def run(A, B, C) at its top level"


def test_a_wrong_number_of_parameters_is_told_with_both_lists():
    kind, line, text = one_finding(KERNEL + "def run(A, C): pass\n")
    assert (kind, line) == (UNAVAILABLE, 12)
    assert text == "run takes 3 parameters (A, B, C), seen 2 (A, C)"


@pytest.mark.parametrize("entry", ["def run(*t): pass", "def run(A, B, C, extra=1): pass"])
def test_an_entry_point_that_takes_the_tensors_one_way_or_another_is_right(entry):
    assert findings(KERNEL + entry + "\n") == []


def test_a_kernel_as_entry_point_is_refused():
    kind, _, text = one_finding(KERNEL + "@triton.jit\ndef run(A, B, C):\n    pass\n")
    assert kind == UNAVAILABLE
    assert "is the host function that launches kernels" in text


def test_a_source_that_does_not_parse_has_one_finding_with_its_line():
    assert one_finding("import triton\ndef run(:\n")[:2] == (SYNTAX, 2)


def test_a_markdown_fence_is_named():
    kind, _, text = one_finding("```python\n" + KERNEL + RUN + "```\n")
    assert kind == SYNTAX
    assert text.endswith("send the code without its Markdown fence")
