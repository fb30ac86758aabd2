"""Which libraries a process and all below it map, read from /proc; and whose are a vendor's."""

import subprocess
import sys

import pytest

from evaluator.judge.mappings import banned_libraries, mapped_libraries

MAP = """
import mmap, sys, time
with open(sys.argv[1], "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    print("mapped", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "name",
    [
        "libcublas.so.13",
        "libcublasLt.so.13.1.0.3",
        "libcudnn_graph.so.9",
        "libcutlass.so",
        "libcufft.so.12",
        "libcusolver.so.12",
        "libcusparse.so.12",
        "libcurand.so.10",
        "libnvrtc.so.13",
        "libnccl.so.2",
        "libtorch_cuda.so",
        "libc10.so",
        "libnvinfer.so.10",
        "libmkl_core.so.2",
        "libopenblas.so.0",
        "libblas.so.3",
        "libcblas.so.3",
        "libflexiblas.so.3",
        "libscipy_openblas64_-32a4b2a6.so",
        "libdnnl.so.3",
        "LIBCUBLAS.so",
    ],
)
def test_a_library_that_computes_is_banned_wherever_it_lies(name):
    for path in (f"/usr/lib/x86_64-linux-gnu/{name}", f"/tmp/{name}"):
        assert banned_libraries((path,), ()) == (name,)


@pytest.mark.parametrize(
    "name",
    [
        "libc.so.6",
        "libm.so.6",
        "libstdc++.so.6",
        "libcuda.so.580.95.05",
        "libcudart.so.13",
        "libcupti.so.13",
        "libtvm_ffi.so",
        "candidate.so",
        "libgfortran-040039e1-0352e75f.so.5.0.0",
        "libnvidia-ml.so.1",
    ],
)
def test_what_every_candidate_needs_is_not(name):
    assert banned_libraries((f"/usr/lib/{name}",), ()) == ()


def test_a_folder_named_like_a_library_convicts_nobody():
    assert banned_libraries(("/opt/libcublas.so.13/libm.so.6",), ()) == ()


def test_a_library_in_a_grandchild_is_seen(tmp_path):
    library = tmp_path / "libcublas.so.13"
    library.write_bytes(b"\x7fELF" + bytes(4096))
    script = 'exec 3>&1; (exec "$0" -c "$1" "$2" >&3) & wait'
    command = ["sh", "-c", script, sys.executable, MAP, str(library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as shell:
        assert shell.stdout is not None
        try:
            assert shell.stdout.readline() == "mapped\n"
            assert str(library) in mapped_libraries(shell.pid)
        finally:
            subprocess.run(["kill", "-KILL", "--", f"-{shell.pid}"], check=True)
