"""The generated launcher, to the letter where it matters, and the record that it is made from."""

import pytest
from pydantic import ValidationError

from evaluator.problems import find_problem
from evaluator.problems.prototypes import parameters
from evaluator.triton.launcher import launcher
from evaluator.triton.recording import Recording
from tests.evaluator.test_problems import with_scalar

GEMM = parameters(find_problem("gemm_n256_k256"))


def pointer(number, offset=0, storage="parameter"):
    return {"kind": "pointer", "storage": storage, "number": number, "offset": offset}


TENSOR_MAP = {
    **pointer(1, 32),
    "kind": "tensor_map",
    "swizzle": 3,
    "element_bytes": 2,
    "element_type": 9,
    "box": [1, 64, 32],
    "shape": [4, 256, 128],
    "strides": [65536, 512, 1],
    "fill_nan": False,
}


def launch(**more):
    return {
        "kind": "launch",
        "kernel": 0,
        "grid": [4, 2, 1],
        "warps": 8,
        "ctas": 2,
        "cooperative": False,
        "dependent": True,
        "arguments": [pointer(0), {"kind": "scalar", "width": 32, "bits": 0x3F800000}],
        **more,
    }


def record(*operations, **more):
    return {
        "kernels": [{"name": "gemm", "shared_bytes": 65536}],
        "scratch": [4096],
        "operations": list(operations) or [launch()],
        **more,
    }


def written(*operations, **more):
    return launcher(Recording.model_validate(record(*operations, **more)), GEMM, "run")


def test_a_launch_is_replayed_with_every_number_of_its_record():
    assert """\
  {
    CUdeviceptr a0 = parameter[0] + 0u;
    uint32_t a1 = 1065353216u;
    void* arguments[] = {&a0, &a1};
    launch(state.kernel[0], "gemm", stream, 8u, 2u, 1u, 256u, 2u, 65536u,
           false, true, arguments);
  }
}
""" in written()


def test_the_prototype_is_that_of_the_plain_binding():
    text = written()
    assert (
        'extern "C" void run(const void* p0, const void* p1, void* p2, CUstream stream) {' in text
    )
    assert "reinterpret_cast<CUdeviceptr>(p2)};" in text


def test_a_scalar_of_the_problem_keeps_its_place_and_tensors_are_counted_without_it():
    text = launcher(Recording.model_validate(record()), parameters(with_scalar()), "run")
    assert "run(const void* p0, float p1, const void* p2, void* p3, CUstream stream) {" in text
    addresses = ", ".join(f"reinterpret_cast<CUdeviceptr>(p{number})" for number in (0, 2, 3))
    assert f"const CUdeviceptr parameter[] = {{{addresses}}};" in text


def test_the_cubin_stands_where_the_cuda_tools_look_for_it():
    assert '.section .nv_fatbin, \\"a\\"' in written()
    assert 'ptxboard_image_0: .incbin \\"../out/kernel_0.fatbin\\"' in written()


def test_a_kernel_is_loaded_and_scratch_reserved_once():
    text = written()
    assert 'kernel[0] = loaded(ptxboard_image_0, "gemm", 65536);' in text
    assert "scratch[0] = reserved(4096);" in text
    assert "static State state;" in text


def test_a_tensor_map_is_written_fastest_axis_first_with_strides_in_bytes():
    text = written(launch(arguments=[TENSOR_MAP]))
    assert "const uint64_t extents0[] = {128u, 256u, 4u};" in text
    assert "const uint64_t steps0[] = {1024u, 131072u, 524288u};" in text
    assert "const uint32_t box0[] = {32u, 64u, 1u};" in text
    assert (
        "alignas(64) CUtensorMap a0 = tensor_map(parameter[1] + 32u, 9, 3, "
        "extents0, steps0, box0, 3, false);"
    ) in text


def test_clearing_keeps_its_place_before_the_launch():
    clear = {"kind": "clear", "storage": "scratch", "number": 0, "offset": 8, "byte_count": 64}
    text = written(clear, launch())
    line = 'check(cuMemsetD8Async(state.scratch[0] + 8u, 0, 64u, stream), "clearing");'
    assert text.index(line) < text.index("launch(state.kernel[0]")


def test_an_absent_pointer_is_null():
    text = written(launch(arguments=[pointer(0, storage="none")]))
    assert "CUdeviceptr a0 = CUdeviceptr{0};" in text


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (record(kernels=[]), "at least 1"),
        (record(kernels=[{"name": 'a"); f("', "shared_bytes": 0}]), "match pattern"),
        (record(kernels=[{"name": "a", "shared_bytes": 232449}]), "232448"),
        (record(kernels=[{"name": "a", "shared_bytes": 0}] * 2), "two kernels have one name"),
        (record(launch(kernel=1)), "kernel 1 of 1 is launched"),
        (record(launch(grid=[0, 1, 1])), "greater than or equal to 1"),
        (record(launch(grid=[1, 65536, 1])), "65535"),
        (record(launch(warps=33)), "32"),
        (record(launch(ctas=17)), "16"),
        (record(launch(arguments=[pointer(1, storage="scratch")])), "scratch 1 of 1"),
        (record(launch(arguments=[pointer(0, -1)])), "greater than or equal to 0"),
        (record(launch(arguments=[{"kind": "scalar", "width": 8, "bits": 256}])), "8 bits"),
        (record(launch(arguments=[{"kind": "scalar", "width": 32, "bits": "1;"}])), "integer"),
        (record(launch(arguments=[{**TENSOR_MAP, "box": [64]}])), "differ in length"),
        (record(launch(arguments=[{**TENSOR_MAP, "box": [1, 64, 257]}])), "256"),
        (record(*[launch()] * 1025), "1024"),
        (record(scratch=[32 << 30, 1]), "scratch memory"),
        (record(extra=1), "not permitted"),
    ],
)
def test_a_record_that_no_tracer_writes_is_refused(broken, said):
    with pytest.raises(ValidationError, match=said):
        Recording.model_validate(broken)
