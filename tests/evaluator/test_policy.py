"""Policy: a library is banned by entering the build, never by being mentioned."""

from dataclasses import replace

import pytest

from evaluator.records.evidence import PolicyEvidence
from evaluator.records.verdicts import Verdict
from evaluator.stages import policy
from evaluator.stages.policy import Headers, banned, judge, parse_dependencies

ENTRY = '\nextern "C" void run(const void*, const void*, void*, cudaStream_t) {}\n'
SPELLINGS = {
    "pasted": "#define JOIN(a, b) <a##b.h>\n#define PICK(t) JOIN(cub, t)\n#include PICK(las_v2)\n",
    "spliced": "#inc\\\nlude <cub\\\nlas_v2.h>\n",
    "digraph": "%:include <cublas_v2.h>\n",
    "optimised": "#ifdef __OPTIMIZE__\n#include <cublas_v2.h>\n#endif\n",
    "device pass": "#ifdef __CUDA_ARCH__\n#include <cublas_v2.h>\n#endif\n",
    "host pass": "#ifndef __CUDA_ARCH__\n#include <cublas_v2.h>\n#endif\n",
}
MENTIONS = """\
// Not using cublas here. Docs say: #include <cublas_v2.h>
/* cudnn's layout differs */
#if 0
#include <cublas_v2.h>
#endif
#if __has_include(<cublas_v2.h>)
#define COULD_BUT_WILL_NOT 1
#endif
static const char* note = "faster than cublasGemmEx( and cudnnConvolutionForward(";
static const char* doc = R"x(
#include <cublas_v2.h>
# 1 "/usr/local/cuda/include/cublas_v2.h" 1
)x";
extern "C" const char* words() { return note + (doc == note); }
"""


@pytest.fixture
def decide(bench, make_work):
    return lambda text, **options: policy.run(make_work(text + ENTRY, **options), bench)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_bans_a_header_however_it_is_written_where_the_library_is_not_installed(
    decide, spelling
):
    result = decide(SPELLINGS[spelling])
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.evidence.banned_headers == ("cublas_v2.h",)
    assert result.message.startswith("cublas_v2.h (cuBLAS) enters the translation unit")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_bans_a_header_however_it_is_written_where_the_library_is_installed(decide, spelling):
    result = decide(SPELLINGS[spelling], files={"cublas_v2.h": "typedef int cublasHandle_t;"})
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.evidence.banned_headers == ("cublas_v2.h",)
    assert result.evidence.header_count > 100


def test_it_lets_text_that_only_mentions_a_library_pass(decide):
    result = decide(MENTIONS)
    assert result.verdict is Verdict.PASSED
    assert result.evidence.banned_headers == ()


def test_asking_whether_a_header_exists_convicts_nobody_where_it_does_exist(decide):
    result = decide(MENTIONS, files={"cublas_v2.h": "typedef int cublasHandle_t;"})
    assert result.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("include", "named"),
    [
        ("cudnn.h", "cudnn.h (cuDNN)"),
        ("cudnn_frontend.h", "cudnn_frontend.h (cuDNN)"),
        ("cublasLt.h", "cublasLt.h (cuBLAS)"),
        ("cublasdx.hpp", "cublasdx.hpp (cuBLAS)"),
        ("cutlass/gemm/device/gemm.h", "cutlass/gemm/device/gemm.h (CUTLASS)"),
        ("cute/tensor.hpp", "cute/tensor.hpp (CuTe)"),
        ("cufft.h", "cufft.h (cuFFT)"),
        ("cusparseLt.h", "cusparseLt.h (cuSPARSE)"),
        ("cub/cub.cuh", "cub/cub.cuh (CUB)"),
    ],
)
def test_it_names_the_library_that_a_header_belongs_to(decide, include, named):
    result = decide(f"#include <{include}>\n")
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert named in result.message


def test_a_vendored_copy_in_the_submission_is_the_library_too(decide):
    result = decide('#include "cute/tensor.hpp"\n', files={"cute/tensor.hpp": "// a copy\n"})
    assert (result.verdict, result.evidence.banned_headers) == (
        Verdict.BANNED_LIBRARY,
        ("cute/tensor.hpp",),
    )


def test_a_header_of_the_author_with_a_similar_name_passes(decide):
    files = {"cublas_notes.h": "#define A 1\n", "cute/swizzle.cuh": "#define B 1\n"}
    result = decide('#include "cublas_notes.h"\n#include "cute/swizzle.cuh"\n', files=files)
    assert result.verdict is Verdict.PASSED
    assert result.evidence.author_headers == ("kernel.cu", *files)


def test_the_headers_of_cuda_itself_pass(decide):
    includes = (
        "cuda.h cuda_runtime.h cuda_bf16.h cuda_fp8.h mma.h cooperative_groups.h cuda/barrier"
    )
    result = decide("".join(f"#include <{name}>\n" for name in includes.split()))
    assert result.verdict is Verdict.PASSED


def test_a_second_source_is_looked_at_too(decide):
    result = decide("", files={"second.cpp": "#include <cudnn.h>\n"})
    assert result.verdict is Verdict.BANNED_LIBRARY


def test_an_allowed_library_passes_for_that_problem_only(bench, make_work):
    work = make_work("#include <cub/block/block_reduce.cuh>" + ENTRY)
    allowing = work.problem.model_copy(update={"allowed_libraries": ("CUB", "Thrust")})
    assert policy.run(work, bench).verdict is Verdict.BANNED_LIBRARY
    assert policy.run(replace(work, problem=allowing), bench).verdict is Verdict.PASSED


@pytest.mark.parametrize("header", ["torch/extension.h", "ATen/cuda/CUDAContext.h"])
def test_torch_headers_have_one_answer(decide, header):
    result = decide(f"#include <{header}>\n")
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message == (
        f"torch headers are not available; use the raw-pointer entry (seen: {header})"
    )


@pytest.mark.parametrize("text", ['#include "not_sent.h"\n', "int x = ;\n", "#error stop\n"])
def test_what_is_not_its_business_is_left_to_compilation(decide, text):
    assert decide(text).verdict is Verdict.PASSED


def test_it_works_with_the_host_compiler(bench, make_work):
    text = 'extern "C" void run(const void*, const void*, void*) {}\n'
    passed = policy.run(make_work("#include <vector>\n" + text, target="host"), bench)
    assert passed.verdict is Verdict.PASSED
    assert passed.evidence.command[1] == "g++"
    refused = policy.run(make_work("#include <cublas_v2.h>\n" + text, target="host"), bench)
    assert refused.verdict is Verdict.BANNED_LIBRARY


def test_a_preprocessor_that_never_ends_is_a_timeout(decide, monkeypatch):
    monkeypatch.setattr(policy, "POLICY_SECONDS", 1.5)
    result = decide('#include "twice.h"\n', files={"twice.h": '#include "twice.h"\n' * 2})
    assert result.verdict is Verdict.TIMEOUT
    assert result.message == "preprocessing was still running after 2 s, the limit"


def test_a_host_file_is_not_quoted(decide):
    result = decide('#include "/etc/passwd"\n')
    assert result.verdict is Verdict.PASSED
    assert "root:" not in result.evidence.log


@pytest.mark.parametrize("path", ["/proc/self/environ", "../../proc/1/cmdline"])
def test_a_file_of_the_system_cannot_be_included_even_where_it_reads_empty(decide, path):
    result = decide(f'#include "{path}"\n')
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "only files of the submission, the toolkit and the compiler" in result.message
    assert "PATH" not in result.evidence.log


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\x00e\x00x\x00t", "kernel.cu: file is UTF-16 or binary (a zero byte at offset 0)"),
        ("int x;\x00", "kernel.cu: file is UTF-16 or binary (a zero byte at offset 6)"),
    ],
)
def test_bytes_that_are_no_text_get_one_line(bench, make_work, content, message):
    result = policy.run(make_work(content), bench)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.message == f"{message}; save it as UTF-8"


def test_a_file_name_that_a_shell_could_read_is_refused(bench, make_work):
    result = policy.run(make_work(ENTRY, files={"$(id).cu": ""}), bench)
    assert result.verdict is Verdict.COMPILE_ERROR
    assert "'$(id).cu'" in result.message


def test_it_reads_make_rules_with_escapes_once_each():
    text = "a.o: src/a.cu \\\n /usr/x.h my\\ file.h\nb.o: \\\n /usr/x.h cost$$.h\n"
    assert parse_dependencies(text) == ("src/a.cu", "/usr/x.h", "my file.h", "cost$.h")


def test_a_missing_vendor_header_counts_like_an_opened_one():
    opened = Headers(opened=("/opt/x/cublas_v2.h", "a.cu"), missing=("cudnn.h",))
    assert banned(opened, ()) == ("cublas_v2.h", "cudnn.h")
    assert banned(opened, ("cublas",)) == ("cudnn.h",)


def test_banned_goes_before_unavailable():
    evidence = PolicyEvidence(
        command=("nvcc",),
        header_count=2,
        banned_headers=("cudnn.h",),
        unavailable_headers=("torch/torch.h",),
    )
    assert judge(evidence).verdict is Verdict.BANNED_LIBRARY
    assert judge(evidence.model_copy(update={"banned_headers": ()})).verdict is (
        Verdict.COMPILE_ERROR
    )
