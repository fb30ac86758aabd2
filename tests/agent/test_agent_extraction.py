"""Which source an answer hands in, in every dialect, or the state that says why there is none."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.agent.extraction import Extraction, ExtractionState, extract
from evaluator.records.candidate import MAX_SOURCE_BYTES

KERNEL = (
    "#include <cuda_runtime.h>\n"
    "__global__ void k(float* y) { y[threadIdx.x] = 1.0f; }\n"
    'extern "C" void run(const float* x, float* y, cudaStream_t stream) {\n'
    "  k<<<1, 32, 0, stream>>>(y);\n"
    "}\n"
)
DRAFT = KERNEL.replace("1.0f", "2.0f")
TRITON = (
    "import triton\n"
    "import triton.language as tl\n\n\n"
    "@triton.jit\n"
    "def k(y):\n"
    "    tl.store(y, 1.0)\n\n\n"
    "def run(x, y):\n"
    "    k[(1,)](y)\n"
)


def of(answer: str, *, finish: str | None = "stop", language: str = "cuda", reasoning: str = ""):
    return extract(answer, finish_reason=finish, reasoning=reasoning, language=language)


def block(code: str, fence: str = "```", info: str = "cuda") -> str:
    return f"{fence}{info}\n{code}{fence}\n"


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "~~~~~"])
@pytest.mark.parametrize(
    "info",
    [
        "cuda", "CUDA", "cu", "c++", "C++", "cpp", "C", "cc", "c++17", "cuda c++", " cuda ", "",
        "text", "{.cpp}", "{ .cuda .numberLines }", 'cuda title="kernel.cu"', "cpp:kernel.cu",
        "kernel.cu", "language-cuda",
    ],
)  # fmt: skip
def test_it_takes_the_block_whatever_its_fence_and_tag(fence, info):
    found = of(f"Here it is:\n{block(KERNEL, fence, info)}Done.")
    assert (found.state, found.source, found.block) == (ExtractionState.EXTRACTED, KERNEL, 1)


@pytest.mark.parametrize("info", ["python", "py", "Python3", "triton", "", "kernel.py"])
def test_it_takes_python_blocks_for_triton(info):
    assert of(block(TRITON, info=info), language="triton").source == TRITON


@pytest.mark.parametrize("info", ["cuda", "python"])
def test_a_block_of_the_other_language_is_no_code(info):
    language, code = ("triton", KERNEL) if info == "cuda" else ("cuda", TRITON)
    found = of(block(code, info=info), language=language)
    assert found.state is ExtractionState.NO_CODE
    assert found.message == f"1 fenced blocks, none of {language} (seen: {info})"


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [("  ", "  ", "  "), ("1. ", "   ", "   "), ("- ", "  ", "  "), ("\t", "\t", "\t")],
)
def test_it_takes_the_indentation_of_the_fence_off_the_code(before, line, after):
    body = "".join(f"{line}{text}\n" if text else "\n" for text in TRITON.split("\n")[:-1])
    found = of(f"{before}```python\n{body}{after}```\n", language="triton")
    assert found.source == TRITON


def test_crlf_and_a_byte_order_mark_do_not_enter_the_source():
    assert of("\ufeff" + block(KERNEL).replace("\n", "\r\n")).source == KERNEL


@pytest.mark.parametrize(
    "answer",
    [
        f"<answer>```cuda\n{KERNEL}```</answer>",
        f"<answer>\n<file path='kernel.cu'>\n```cuda\n{KERNEL}```\n</file>\n</answer>",
    ],
)
def test_tags_around_a_fence_do_not_matter(answer):
    assert of(answer).source == KERNEL


@pytest.mark.parametrize("first", ["kernel.cu", "cuda", "src/kernel.cu"])
def test_a_bare_file_name_or_language_in_the_first_line_is_not_code(first):
    assert of(block(f"{first}\n{KERNEL}", info="")).source == KERNEL


def test_the_draft_that_the_model_corrected_is_not_taken():
    answer = (
        f"Draft:\n{block(DRAFT, '~~~', 'c++')}That misses the tail. Build with:\n"
        f"~~~bash\nnvcc -arch=sm_90a /tmp/*.cu\n~~~\nFinal:\n{block(KERNEL, '~~~')}"
        "Run it:\n```bash\ncat > k.cu <<'EOF'\n" + DRAFT + "EOF\n```\n"
    )
    found = of(answer)
    assert (found.source, found.block) == (KERNEL, 3)
    assert found.message == "block 3 of 4 (cuda, line 14)"


def test_a_declaration_in_the_last_block_counts_where_nothing_defines_it():
    declared = 'extern "C" void run(const float* x, float* y, int n, cudaStream_t st);\n'
    answer = f"{block('int wrong;' + chr(10), '~~~', 'c++')}{block(declared, '~~~')}"
    assert of(answer).source == declared


def test_a_usage_example_after_the_kernel_is_not_taken():
    usage = (
        'extern "C" void run(const float*, float*, cudaStream_t);\nint main() { run(x, y, 0); }\n'
    )
    assert of(block(KERNEL) + "Call it so:\n" + block(usage, info="cpp")).source == KERNEL


@pytest.mark.parametrize(
    "code",
    [
        "/* Use:\n```\nrun(x);\n```\n*/\n" + KERNEL,
        'const char* help = R"(\n```cuda\nrun(x);\n```\n)";\n' + KERNEL,
        "// ``` and ~~~ in a line\n" + KERNEL,
        "~~~\n" + KERNEL,
    ],
)
def test_a_fence_in_a_comment_or_string_of_the_code_does_not_end_it(code):
    assert of(f"First:\n{block(code)}Notes.\n").source == code


def test_a_fence_in_a_docstring_does_not_end_it():
    code = TRITON.replace("    k[", '    """\n    ```\n    run(x)\n    ```\n    """\n    k[')
    assert of(block(code, info="python"), language="triton").source == code


def test_a_longer_fence_holds_a_shorter_one():
    code = "// as Markdown has it:\n```\n" + KERNEL
    assert of(block(code, "````")).source == code


def test_a_comment_that_never_ends_does_not_swallow_the_blocks_behind_it():
    assert of(block("/* open\n") + block(KERNEL)).source == KERNEL


def test_a_block_with_a_fence_in_a_comment_can_be_cut_off_too():
    found = of(f"```cuda\n/*\n```\n*/\n{KERNEL}")
    assert found.message == "block 1, which begins in line 1, is not closed"


def test_a_star_in_a_shell_block_opens_no_comment():
    assert of(block("ls /tmp/*\n", info="sh") + block("/* a */\n" + KERNEL)).block == 2


@pytest.mark.parametrize(
    "export",
    [
        'extern "C" {\nvoid run(const float* x, float* y, cudaStream_t s) {}\n}\n',
        'extern "C"\nvoid\nrun(float (*x)[4],\n    float* y) noexcept\n{}\n',
        '#define API extern "C" __attribute__((used))\nAPI void run(float* y) {}\n',
        "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run_tensors);\n",
    ],
)
def test_it_knows_every_way_to_export_the_entry_point(export):
    code = f"__global__ void k() {{}}\n{export}"
    assert of(block(code)).source == code


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("void run(float* y) {}\n", "'run' is defined, but not exported under its name"),
        ("int main() { run(y); }\n", "the code block does not define 'run'"),
        ('// extern "C" void run(float* y) {}\nint x;\n', "the code block does not define 'run'"),
        ('extern "C" void runner(float* y) {}\n', "the code block does not define 'run'"),
        *(
            (f'extern "C" void go() {{ {use} }}\n', "the code block does not define 'run'")
            for use in (
                "run(y);",
                "return run(y);",
                "object.run(y);",
                "object->run(y);",
                "A::run(y);",
            )
        ),
    ],
)
def test_a_block_without_the_entry_point_says_what_is_missing(code, message):
    found = of(block(code))
    assert (found.state, found.message) == (ExtractionState.NO_ENTRY_POINT, message)


def test_no_block_of_several_defines_it():
    found = of(block("int a;\n") + block("int b;\n"))
    assert found.message == "none of 2 blocks defines 'run'"


@pytest.mark.parametrize(
    "code", ["class A:\n    def run(self): ...\n", "x = 1\n", '"""\ndef run():\n"""\n']
)
def test_a_triton_file_needs_run_at_its_top_level(code):
    found = of(block(code, info="python"), language="triton")
    assert found.state is ExtractionState.NO_ENTRY_POINT


@pytest.mark.parametrize("text", ["", "  \n\t\n"])
def test_an_empty_answer_is_empty(text):
    found = of(text, finish="stop")
    assert (found.state, found.message) == (
        ExtractionState.EMPTY,
        "the answer is empty: finish reason: stop",
    )


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ("", "First I tile K by 64 ..."),
        (f"<think>\n{block(KERNEL)}\n</think>\n", ""),
        (f"<think>\n{block(KERNEL)}", ""),
        (f"Tile by 64.\n{block(KERNEL)}\n</think>\n", ""),
    ],
)
def test_code_inside_reasoning_is_never_taken(text, reasoning):
    assert of(text, reasoning=reasoning).state is ExtractionState.REASONING_ONLY


def test_an_answer_cut_off_while_reasoning_says_so():
    found = of("<think>\nFirst I tile", finish="length")
    assert found.state is ExtractionState.REASONING_ONLY
    assert found.message.startswith("the answer was cut off while reasoning: finish reason: length")


@pytest.mark.parametrize("opening", ["<think>\n", ""])
def test_the_answer_behind_reasoning_is_read(opening):
    answer = f"{opening}A draft:\n{block(DRAFT)}No.\n</think>\n{block(KERNEL)}"
    assert of(answer).source == KERNEL


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_a_cut_answer_is_truncated_even_with_a_whole_block_before(finish):
    found = of(f"{block(DRAFT)}Better:\n```cuda\n{KERNEL[:80]}", finish=finish)
    assert (found.state, found.source) == (ExtractionState.TRUNCATED, None)
    assert found.message == (
        f"the server cut the answer off (finish reason: {finish.lower()}); "
        "block 2, which begins in line 9, is not closed"
    )


@pytest.mark.parametrize("finish", ["stop", None])
def test_a_last_block_that_is_not_closed_is_truncated(finish):
    found = of(f"{block(DRAFT)}Better:\n```cuda\n{KERNEL}", finish=finish)
    assert found.state is ExtractionState.TRUNCATED


@pytest.mark.parametrize("rest", ["```bash\nnvcc k.cu\n", "```\n", "```cuda\n   \n"])
def test_an_open_block_that_can_hold_no_kernel_does_no_harm(rest):
    assert of(block(KERNEL) + rest).source == KERNEL


def test_code_without_a_fence_is_no_code():
    found = of(KERNEL)
    assert found.state is ExtractionState.NO_CODE
    assert found.message == f"{len(KERNEL.strip())} characters of text, no fenced block"


def test_an_answer_that_was_blocked_says_so():
    found = of("I cannot help with that.", finish="content_filter")
    assert found.message.endswith("the server stopped the answer (finish reason: content_filter)")


@pytest.mark.parametrize(
    "header",
    ["**tiles.cuh**\n```cuda\n", '```cuda title="tiles.cuh"\n', "```cuda\n// tiles.cuh\n"],
)
def test_a_block_that_includes_another_block_is_several_files(header):
    including = block(f'#include "tiles.cuh"\n{KERNEL}')
    answer = f"{header}int tile;\n```\n{including}"
    found = of(answer)
    assert (found.state, found.message) == (
        ExtractionState.SEVERAL_FILES,
        "block 2 needs tiles.cuh, which is block 1",
    )


def test_a_python_file_that_imports_another_block_is_several_files():
    answer = f"`tiles.py`:\n{block('A = 1' + chr(10), info='python')}"
    answer += block("from tiles import A\n" + TRITON, info="python")
    assert of(answer, language="triton").state is ExtractionState.SEVERAL_FILES


def test_a_kernel_in_another_block_is_several_files():
    host = 'void launch(float* y);\nextern "C" void run(float* y) { launch(y); }\n'
    found = of(block("__global__ void k() {}\nvoid launch(float* y) {}\n") + block(host))
    assert found.message == "block 2 has no kernel; block 1 has"


def test_a_toolkit_header_in_quotes_is_no_file_of_the_answer():
    code = KERNEL.replace("<cuda_runtime.h>", '"cuda_runtime.h"')
    assert of(block(DRAFT, info="draft.cu") + block(code)).source == code


def test_a_source_over_the_limit_is_too_large():
    code = KERNEL + "//" + "x" * MAX_SOURCE_BYTES + "\n"
    found = of(block(code))
    assert found.state is ExtractionState.TOO_LARGE
    assert found.message == (f"block 1 holds {len(code)} bytes, at most {MAX_SOURCE_BYTES}")


def test_a_lone_surrogate_does_no_harm():
    found = of(block("// \ud800\n" + KERNEL))
    assert found.source == "// \N{REPLACEMENT CHARACTER}\n" + KERNEL


@pytest.mark.parametrize("state", ExtractionState)
def test_only_an_extracted_source_has_a_source(state):
    source = None if state is ExtractionState.EXTRACTED else "int x;"
    with pytest.raises(ValueError, match=f"state {state.value}"):
        Extraction(state=state, source=source, message="")


PIECES = st.sampled_from(
    ["```", "~~~", "````", "cuda", "\n", "\r\n", "/*", "*/", '"', "'", "<think>", "</think>", "> ",
     'extern "C" ', "void run(", ")", "{", "}", "#include \"a.cuh\"", "a.cuh", 'R"x(', '"""', "  ",
     "def run(", "\ud800", "\x00", "`", "1. ", "<a b>", "</a>", "\\"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join),
    st.sampled_from(["stop", "length", None]),
    st.sampled_from(["cuda", "cpp", "triton"]),
)
def test_no_text_makes_it_raise(text, finish, language):
    found = extract(text, finish_reason=finish, reasoning="", language=language)
    assert (found.source is not None) == (found.state is ExtractionState.EXTRACTED)
    assert finish != "length" or found.source is None


@pytest.mark.parametrize(
    "piece",
    ["/*\n", "```c\n/*\n```\n", 'R"a(', '"""\n', "run(", "```\n", "<think>", "void run(a ",
     "~~~~\n```\n", "</think>", "'", '"', "#include \"", "- ", "<a ", "\\", "x.", "`"],
)  # fmt: skip
@pytest.mark.parametrize("language", ["cuda", "triton"])
def test_a_long_answer_is_read_in_linear_time(piece, language):
    text = "```\n" + piece * (300_000 // len(piece))
    started = time.monotonic()
    of(text + "\n```\n", language=language)
    assert time.monotonic() - started < 5
