"""Probe programs of a pack compiled for an architecture, and their machine code by kernel."""

import os
import subprocess
from collections import defaultdict
from pathlib import Path

from evaluator.sass import parse_listing
from evaluator.toolchain import Toolchain


def compile_cubin(source: Path, out: Path, *, arch: str) -> Path:
    """`arch` is 90a or 100a; a warning is an error."""
    nvcc = Toolchain.find().need("nvcc")
    gencode = f"-gencode=arch=compute_{arch},code=sm_{arch}"
    command = [nvcc.path, "-O3", "-std=c++17", gencode, "-Werror", "all-warnings"]
    cubin = out / f"{source.stem}.{arch}.cubin"
    done = subprocess.run(
        [*command, "-cubin", "-o", cubin, source], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return cubin


def machine_code(cubin: Path) -> dict[str, list[str]]:
    """Texts of the instructions by the kernel's name, as the compiler mangled it."""
    tools = Toolchain.find()
    folders = [str(tools.need(name).path.parent) for name in ("cuobjdump", "nvdisasm")]
    path = os.pathsep.join([*folders, os.environ["PATH"]])
    done = subprocess.run(
        [tools.need("cuobjdump").path, "--dump-sass", cubin],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
        timeout=120,
    )
    kernels: dict[str, list[str]] = defaultdict(list)
    for instruction in parse_listing(done.stdout):
        kernels[instruction.function].append(instruction.text)
    return dict(kernels)
