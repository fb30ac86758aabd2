"""Compilation with the real nvcc and g++: the right flags, readable refusals, honest caching."""

from dataclasses import replace

import pytest

from evaluator.build import SOURCE_FOLDER, lay_out, plan
from evaluator.problems import load_problems, prototype
from evaluator.process import Limits
from evaluator.records.evidence import Ending
from evaluator.records.verdicts import EvaluatorFault, Verdict
from evaluator.stages import compilation
from evaluator.targets import TARGETS
from evaluator.toolchain import Tool, Toolchain

RUN = 'extern "C" void run(const void* a, const void* b, void* c, cudaStream_t s) {}\n'
HOST_RUN = 'extern "C" void run(const void* a, const void* b, void* c) {}\n'
WGMMA = """\
#include <cstdint>
__global__ void mm(float* o, uint64_t a, uint64_t b) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3},%4,%5,1,1,1,0,0;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  o[threadIdx.x] = d0 + d1 + d2 + d3;
}
"""


@pytest.fixture
def build(bench, make_work):
    return lambda text, **options: compilation.run(make_work(text, **options), bench)


def test_hopper_code_is_built_for_sm_90a_and_what_was_built_is_kept(bench, make_work):
    work = make_work(WGMMA + RUN)
    result = compilation.run(work, bench)
    assert result.verdict is Verdict.PASSED
    evidence = result.evidence
    assert "arch=compute_90a,code=sm_90a" in evidence.process.command
    assert evidence.compiler_version == f"nvcc {bench.toolchain.nvcc.version}"
    assert evidence.exported_symbols[0] == "run"
    assert evidence.process.sandboxed is True
    [kernel] = evidence.kernels
    assert kernel.name == "mm(float*, unsigned long, unsigned long)"
    assert kernel.registers > 8
    done = work.with_result(result)
    assert done.path(done.artifact("library")).read_bytes()[:4] == b"\x7fELF"
    assert done.path(done.artifact("cubin")).read_bytes()[:4] == b"\x7fELF"
    assert evidence.cubin == done.artifact("cubin")


def test_hopper_code_for_blackwell_is_the_authors_error_and_names_the_architecture(build):
    result = build(WGMMA + RUN, target="b200")
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "wgmma.fence" in result.message
    assert result.message.endswith("(built for sm_100a)")
    assert result.evidence.library is None


def test_the_build_is_for_the_targets_architecture_alone(build):
    command = build(WGMMA + RUN).evidence.process.command
    assert [text for text in command if "compute_" in text] == ["arch=compute_90a,code=sm_90a"]
    assert not [text for text in command if text.startswith(("-arch", "--gpu-arch"))]


ODD_SOURCES = {
    "byte-order mark": "\ufeff" + RUN,
    "CRLF": "#define BODY \\\r\n  int unused;\r\n" + RUN.replace("\n", "\r\n"),
    "backslash and space": "#define BODY \\ \n  int unused;\n" + RUN,
    "accent": "// \N{LATIN SMALL LETTER E WITH ACUTE}\n" + RUN,
}


@pytest.mark.parametrize("name", ODD_SOURCES)
def test_the_bytes_compiled_are_the_bytes_sent(bench, make_work, tmp_path, name):
    work = make_work(ODD_SOURCES[name])
    lay_out(work, plan(work, bench.toolchain), tmp_path / "laid")
    written = (tmp_path / "laid" / SOURCE_FOLDER / "kernel.cu").read_bytes()
    assert written == ODD_SOURCES[name].encode()


@pytest.mark.parametrize("name", ODD_SOURCES)
def test_odd_but_readable_sources_build(build, name):
    assert build(ODD_SOURCES[name]).verdict is Verdict.PASSED


def test_utf16_gets_one_line(build):
    text = RUN.encode("utf-16-le").decode("latin-1")
    result = build(text)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message == (
        "kernel.cu: file is UTF-16 or binary (a zero byte at offset 1); save it as UTF-8"
    )


def test_an_entry_point_with_cpp_linkage_is_found_out_at_build_time(build):
    text = (
        "__global__ void k() {}\n"
        "void run(const void*, const void*, void*, cudaStream_t) { k<<<1, 1>>>(); }\n"
    )
    result = build(text)
    assert result.verdict is Verdict.ENTRY_POINT_MISSING
    assert result.message == (
        "entry point 'run' is not exported; found '_Z3runPKvS0_PvP11CUstream_st', which has "
        'C++ linkage: write extern "C" before run'
    )


def test_a_near_name_is_offered(build):
    result = build(RUN.replace("run", "runs"))
    assert result.verdict is Verdict.ENTRY_POINT_MISSING
    assert "near names: runs" in result.message


def test_an_entry_point_hidden_from_the_loader_is_missing(build):
    result = build(HIDDEN)
    assert result.verdict is Verdict.ENTRY_POINT_MISSING


HIDDEN = RUN.replace("void run", '__attribute__((visibility("hidden"))) void run')


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "const void* a, const void* b, void* c",
            "run takes 4 parameters (const __nv_bfloat16* A, const __nv_bfloat16* B, "
            "__nv_bfloat16* C, cudaStream_t stream), seen 3 (built for sm_90a)",
        ),
        (
            "const void* a, const void* b, void* c, int m, int n, int k, cudaStream_t s",
            "run takes 4 parameters (const __nv_bfloat16* A, const __nv_bfloat16* B, "
            "__nv_bfloat16* C, cudaStream_t stream), seen 7 (built for sm_90a)",
        ),
        (
            "const void* a, float b, void* c, cudaStream_t s",
            "parameter 2 of run (const __nv_bfloat16* B) must be a pointer, void or typed "
            "(built for sm_90a)",
        ),
        (
            "const void* a, const void* b, void* c, int stream",
            "the last parameter of run must be the stream (cudaStream_t stream) (built for sm_90a)",
        ),
    ],
    ids=["no stream", "sizes", "scalar", "stream as int"],
)
def test_a_wrong_prototype_is_told_in_words(build, given, message):
    result = build(f'extern "C" void run({given}) {{}}\n')
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message == message


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" void run(const uint4* a, const int* b, char* c, cudaStream_t s) noexcept {}\n',
        'extern "C" int run(void* a, void* b, void* c, CUstream_st* s) { return 0; }\n',
        "#define static_assert(...)\n" + RUN,
    ],
    ids=["typed and noexcept", "void and int result", "own static_assert"],
)
def test_any_prototype_with_the_right_shape_is_taken(build, text):
    assert build("#include <cuda_runtime.h>\n" + text).verdict is Verdict.PASSED


@pytest.mark.parametrize("path", ["/etc/passwd", "../../worker/.env", "/root/.ssh/id_rsa"])
def test_the_log_holds_nothing_of_this_machine(build, path, monkeypatch):
    monkeypatch.setenv("PTXBOARD_WORKER_TOKEN", "do-not-leak")
    result = build(f'#include "{path}"\n' + RUN)
    assert result.verdict is Verdict.COMPILE_ERROR
    shown = result.to_json().replace(path, "")
    for leak in ("root:", "do-not-leak", "/tmp/", "/build", "/usr/local/cuda", "/home", "/root"):
        assert leak not in shown


def test_it_cannot_embed_a_file_of_the_host(build):
    result = build('asm(".incbin \\"/etc/passwd\\"");\n' + RUN)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "root:" not in result.evidence.log


def test_the_first_error_is_the_message_and_names_the_authors_file(build):
    result = build("int x = ;\n" + RUN)
    assert result.message == "kernel.cu(1): error: expected an expression (built for sm_90a)"


def test_a_long_log_is_cut_and_keeps_the_errors(build):
    noise = "".join(f'#warning "{"n" * 60} {number}"\n' for number in range(1500))
    result = build(noise + "int x = ;\n" + RUN)
    assert result.evidence.log_truncated is True
    assert len(result.evidence.log.encode()) <= 64 << 10
    assert "kernel.cu(1501): error: expected an expression" in result.evidence.log


def test_the_cache_answers_the_second_time_with_the_same_bytes(bench, make_work, tmp_path):
    work = make_work(RUN + "// cached\n")
    first = compilation.run(work, bench)
    for artifact in first.artifacts:
        work.path(artifact).unlink()
    second = compilation.run(work, bench)
    assert (first.evidence.cache_hit, second.evidence.cache_hit) == (False, True)
    assert second.artifacts == first.artifacts
    assert work.path(second.evidence.library).exists()


def test_errors_are_cached_too(build):
    text = "int cached = ;\n" + RUN
    assert build(text).evidence.cache_hit is False
    again = build(text)
    assert (again.verdict, again.evidence.cache_hit) == (Verdict.COMPILE_ERROR, True)


def test_a_damaged_cache_entry_is_built_again(bench, make_work, tmp_path_factory):
    bench = replace(bench, cache=tmp_path_factory.mktemp("damaged"))
    work = make_work(RUN)
    first = compilation.run(work, bench)
    (bench.cache / "objects" / first.evidence.library.sha256).write_bytes(b"\x7fELF other")
    again = compilation.run(work, bench)
    assert (again.verdict, again.evidence.cache_hit) == (Verdict.PASSED, False)


def test_everything_that_changes_a_build_changes_its_key(bench, make_work):
    def key(tools=bench.toolchain, text=RUN, **options):
        work = make_work(text, **options)
        return plan(work, tools).key(work)

    newer = replace(
        bench.toolchain, nvcc=Tool(**{**_fields(bench.toolchain.nvcc), "version": "13.1.0"})
    )
    keys = {
        "same": key(),
        "target": key(target="b200"),
        "board": key(target="h100"),
        "binding": key(binding="tvm-ffi"),
        "byte": key(text=RUN + " "),
        "name": key(entry="other.cu"),
        "file": key(files={"a.h": ""}),
        "file name": key(files={"b.h": ""}),
        "moved byte": key(text=RUN[:-1], files={"a.h": "\n"}),
        "prototype": key(problem="mha_with_lse_d64_small"),
        "compiler": key(tools=newer),
    }
    assert len(set(keys.values())) == len(keys)
    assert key() == keys["same"]


def _fields(tool):
    return {name: getattr(tool, name) for name in ("path", "version", "root")}


def test_equal_sources_for_two_targets_and_a_newer_compiler_are_three_builds(
    bench, make_work, tmp_path_factory
):
    """Field case O-05: evaluate for one GPU, then for another, then upgrade nvcc."""
    first = replace(bench, cache=tmp_path_factory.mktemp("three-builds"))
    newer = replace(
        bench.toolchain, nvcc=Tool(**{**_fields(bench.toolchain.nvcc), "version": "13.1.0"})
    )
    upgraded = replace(first, toolchain=newer)
    builds = [
        compilation.run(make_work(RUN, target=target), lent).evidence
        for target, lent in (("h100", first), ("b200", first), ("h100", upgraded))
    ]
    assert [seen.cache_hit for seen in builds] == [False, False, False]
    assert len({seen.cache_key for seen in builds}) == 3
    again = compilation.run(make_work(RUN, target="h100"), first).evidence
    assert (again.cache_hit, again.cache_key) == (True, builds[0].cache_key)


def test_a_new_harness_builds_again(bench, make_work, monkeypatch):
    work = make_work(RUN)
    before = plan(work, bench.toolchain).key(work)
    monkeypatch.setattr("evaluator.build.HARNESS_VERSION", "next")
    assert plan(work, bench.toolchain).key(work) != before


def test_every_source_is_compiled_and_linked(build):
    text = '#include "parts/part.h"\n' + RUN.replace("{}", "{ part(c, s); }")
    files = {
        "parts/part.h": "#include <cuda_runtime.h>\nvoid part(void*, cudaStream_t);\n",
        "parts/part.cu": (
            '#include "part.h"\n__global__ void fill(float* c) { *c = 1; }\n'
            "void part(void* c, cudaStream_t s) { fill<<<1, 1, 0, s>>>((float*)c); }\n"
        ),
    }
    result = build(text, files=files)
    assert result.verdict is Verdict.PASSED
    assert [kernel.name for kernel in result.evidence.kernels] == ["fill(float*)"]


def test_a_call_into_a_vendor_library_is_seen_without_its_header(build):
    text = 'extern "C" int cublasGemmEx(...);\n' + RUN.replace("{}", "{ cublasGemmEx(a, b, c); }")
    result = build(text)
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.message == "the library calls or links cublasGemmEx"
    assert result.evidence.banned_symbols == ("cublasGemmEx",)


def test_opening_libraries_at_run_time_is_not_convicted_here(build):
    text = '#include <dlfcn.h>\nextern "C" void* handle() { return dlopen("x", RTLD_NOW); }\n'
    assert build(text + RUN).verdict is Verdict.PASSED


def test_driver_symbols_may_stay_open(build):
    text = '#include <cuda.h>\nextern "C" int driver() { int v; return cuDriverGetVersion(&v); }\n'
    assert build(text + RUN).verdict is Verdict.PASSED


def test_the_tvm_ffi_binding_builds_the_prototype_of_its_page(build):
    text = prototype(load_problems()["gemm_n256_k256"], "tvm-ffi", "cuda")
    result = build(text, binding="tvm-ffi")
    assert result.verdict is Verdict.PASSED
    assert result.evidence.exported_symbols[0] == "__tvm_ffi_run"
    assert "libtvm_ffi.so" in result.evidence.needed_libraries


def test_the_tvm_ffi_binding_says_which_macro_is_missing(build):
    result = build(RUN, binding="tvm-ffi")
    assert result.verdict is Verdict.ENTRY_POINT_MISSING
    assert result.message == (
        "entry point '__tvm_ffi_run' is not exported, exported without the macro: 'run'; "
        "add TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, your_function);"
    )


def test_the_host_target_is_built_by_the_host_compiler(build):
    result = build(HOST_RUN, target="host")
    assert result.verdict is Verdict.PASSED
    assert result.evidence.process.command[:3] == ("g++", "-O3", "-march=native")
    assert (result.evidence.cubin, result.evidence.kernels) == (None, ())


@pytest.mark.parametrize("name", [name for name, p in load_problems().items() if p.development])
def test_the_c_prototypes_of_small_problems_build_on_the_host(build, name):
    text = prototype(load_problems()[name], "c", "cpp")
    assert build(text, target="host", problem=name).verdict is Verdict.PASSED


def test_a_wrong_prototype_on_the_host_is_told_in_words(build):
    result = build('extern "C" void run(const void* a) {}\n', target="host")
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message.startswith("run takes 3 parameters (const uint16_t* A,")
    assert "seen 1" in result.message


@pytest.mark.parametrize(("exit_code", "verdict"), [(0, Verdict.PASSED), (1, Verdict.TIMEOUT)])
def test_words_about_time_limits_count_only_where_the_compiler_failed(
    bench, make_work, exit_code, verdict
):
    work = make_work(RUN)
    built = compilation.run(work, bench).evidence
    process = built.process.model_copy(update={"exit_code": exit_code})
    told = built.model_copy(update={"process": process, "log": "CPU time limit exceeded\n"})
    result = compilation.judge(told, target=work.target, binding=work.candidate.binding)
    assert result.verdict is verdict


def test_a_compiler_that_never_ends_is_a_timeout_and_not_cached(build, monkeypatch):
    monkeypatch.setattr(compilation, "COMPILE_SECONDS", 1)
    text = SLOW + HOST_RUN
    for _ in range(2):
        result = build(text, target="host")
        assert result.verdict is Verdict.TIMEOUT
        assert result.message == "the compiler was still running at its limit, 1 s"
        assert result.evidence.cache_hit is False


SLOW = """\
template <int n, int m> struct slow {
  static constexpr int v = slow<n - 1, m>::v + slow<n - 1, m + (1 << n)>::v;
};
template <int m> struct slow<0, m> { static constexpr int v = 1; };
int many = slow<24, 0>::v;
"""


def test_a_compiler_without_memory_is_the_authors_error_and_names_the_limit(build, monkeypatch):
    small = Limits(address_space_bytes=256 << 20)
    monkeypatch.setattr(compilation, "COMPILER_LIMITS", small)
    result = build(SLOW + HOST_RUN, target="host")
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message == "the compiler ran out of memory, limit 8 GiB a process"


def test_a_huge_library_is_refused_with_the_limit(build):
    result = build("char big[20 << 20] = {1};\n" + HOST_RUN, target="host")
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message.endswith("bytes, at most 16777216")


def test_a_missing_compiler_is_our_fault(make_work, bench):
    with pytest.raises(EvaluatorFault, match="nvcc was not found"):
        compilation.run(make_work(RUN), replace(bench, toolchain=Toolchain()))


def test_a_library_that_vanished_is_our_fault(build):
    passed = build(RUN).evidence
    lost = passed.model_copy(update={"library": None})
    with pytest.raises(EvaluatorFault, match="left no library"):
        compilation.judge(lost, target=TARGETS["h200"], binding="c")


def test_a_killed_compiler_is_never_a_pass(build):
    passed = build(RUN).evidence
    killed = passed.process.model_copy(update={"ending": Ending.OUT_OF_MEMORY, "exit_code": None})
    evidence = passed.model_copy(update={"process": killed})
    result = compilation.judge(evidence, target=TARGETS["h200"], binding="c")
    assert result.verdict is Verdict.COMPILE_ERROR


def test_a_library_that_cuobjdump_cannot_read_is_its_authors_doing(bench, make_work):
    """Eight bytes of a fat binary's header, made by the assembler: no tool of ours has failed."""
    section = r'asm(".section .nv_fatbin,\"a\"\n.long 0xBA55ED50,0x10001\n.previous");'
    text = f"""
    {section}
    __global__ void kernel() {{}}
    extern "C" void run(const void* a, const void* b, void* c, cudaStream_t stream) {{
      kernel<<<1, 1, 0, stream>>>();
    }}
    """
    result = compilation.run(make_work(text), bench)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message.startswith("cuobjdump cannot read the library (exit code 1)")
