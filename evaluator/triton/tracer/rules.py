"""What a Triton source may say, read from its syntax; nothing of it is run.

A courtesy that tells authors early and in words. The wall is elsewhere: the source runs in the
sandbox, and only cubins and launches leave it, so library work has nothing to run on. What gets
past: names built at run time, and work done by a method whose name says nothing.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LIBRARY, UNAVAILABLE, ENTRY, SYNTAX = "library", "unavailable", "entry", "syntax"
MODULES = frozenset(
    {
        "__future__",
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "itertools",
        "math",
        "operator",
        "torch",
        "triton",
        "typing",
    }
)
TRITON_PARTS = ("triton.language", "triton.tools.tensor_descriptor", "triton.runtime")
LIBRARIES = frozenset(
    {
        "apex",
        "cublas",
        "cuda",
        "cudnn",
        "cupy",
        "cutlass",
        "deep_gemm",
        "flag_gems",
        "flash_attn",
        "flashinfer",
        "jax",
        "liger_kernel",
        "numba",
        "pycuda",
        "tilelang",
        "torchao",
        "torchvision",
        "transformer_engine",
        "transformers",
        "triton_kernels",
        "vllm",
        "xformers",
    }
)
DTYPES = (
    "float64",
    "double",
    "float32",
    "float",
    "float16",
    "half",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int64",
    "long",
    "int32",
    "int",
    "int16",
    "short",
    "int8",
    "uint8",
    "bool",
)
TORCH_NAMES = frozenset(
    [
        *DTYPES,
        *("Size", "Tensor", "cuda", "device", "dtype"),
        *("empty", "empty_like", "empty_strided", "zeros", "zeros_like"),
    ]
)
TORCH_CUDA_NAMES = frozenset({"current_device", "device", "get_device_properties"})
TORCH_NAMES_WITHOUT_WORK = frozenset(
    {"cuda", "finfo", "iinfo", "inference_mode", "manual_seed", "no_grad", "set_grad_enabled"}
)
REFUSED_NAMES = frozenset(
    {
        "__builtins__",
        "__import__",
        "__loader__",
        "__spec__",
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "getattr",
        "globals",
        "input",
        "locals",
        "open",
        "setattr",
        "vars",
    }
)
TENSOR_WORK = frozenset(
    {
        "addmm",
        "baddbmm",
        "bmm",
        "einsum",
        "log_softmax",
        "logsumexp",
        "matmul",
        "mm",
        "mv",
        "scaled_dot_product_attention",
        "softmax",
    }
)
NO_WORK = "no library does the work here; write it as a @triton.jit kernel"
OFFERED_TORCH = "torch offers dtypes, empty, zeros, their _like forms and cuda device properties"
OFFERED_MODULES = (
    "triton, triton.language, triton.tools.tensor_descriptor, torch and a few plain "
    f"modules ({', '.join(sorted(MODULES - {'torch', 'triton', '__future__'}))}) can be imported"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is refused; `line` counts from 1."""

    kind: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`imports`: modules as the source names them, each once."""

    imports: tuple[str, ...]
    findings: tuple[Finding, ...]


def read(text: str, entry: str, parameters: Sequence[str]) -> Reading:
    """All findings in line order; a source that does not parse has one."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        said = getattr(error, "msg", None) or str(error)
        hint = "; send the code without its Markdown fence" if _fenced(text) else ""
        finding = Finding(kind=SYNTAX, line=line, text=f"{said}{hint}")
        return Reading(imports=(), findings=(finding,))
    reader = _Reader()
    reader.visit(tree)
    found = [*reader.findings, *_entry_findings(tree, entry, parameters)]
    return Reading(
        imports=tuple(dict.fromkeys(reader.imports)),
        findings=tuple(sorted(found, key=lambda one: one.line)),
    )


def _fenced(text: str) -> bool:
    return any(line.lstrip().startswith("```") for line in text.splitlines())


def _entry_findings(tree: ast.Module, entry: str, parameters: Sequence[str]) -> Iterator[Finding]:
    wanted = f"def {entry}({', '.join(parameters)})"
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == entry]
    if not found:
        yield Finding(kind=ENTRY, line=1, text=f"the source defines no {wanted} at its top level")
        return
    function = found[-1]
    given = function.args
    seen = [one.arg for one in (*given.posonlyargs, *given.args)]
    required = len(seen) - len(given.defaults)
    if _is_kernel(function):
        text = f"{entry} is a kernel; {wanted} is the host function that launches kernels"
        yield Finding(kind=UNAVAILABLE, line=function.lineno, text=text)
    elif given.vararg is None and not required <= len(parameters) <= len(seen):
        text = (
            f"{entry} takes {len(parameters)} parameters ({', '.join(parameters)}), "
            f"seen {len(seen)} ({', '.join(seen)})"
        )
        yield Finding(kind=UNAVAILABLE, line=function.lineno, text=text)


def _is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (_dotted(called) or "").split(".")[-1] == "jit":
            return True
    return False


def _dotted(node: ast.expr) -> str | None:
    """`torch.cuda.empty_cache` of a chain of plain names, None of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class _Reader(ast.NodeVisitor):
    """Walks once; inside a kernel `@` and method names are Triton's own."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.findings: list[Finding] = []
        self._torch: set[str] = set()
        self._in_kernel = False

    def _refuse(self, kind: str, node: ast.AST, text: str) -> None:
        line = getattr(node, "lineno", 1)
        self.findings.append(Finding(kind=kind, line=line, text=text))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._module(node, alias.name)
            if alias.name.split(".")[0] == "torch":
                self._torch.add(alias.asname or "torch")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            self._refuse(UNAVAILABLE, node, "relative import: a Triton candidate is one file")
            return
        for alias in node.names:
            if module.split(".")[0] == "torch":
                self._torch_name(node, f"{module}.{alias.name}")
        if module == "triton" or module.split(".")[0] != "torch":
            self._module(node, module)
            if module == "triton":
                parts = [f"triton.{alias.name}" for alias in node.names]
                self._triton_parts(node, [one for one in parts if one == "triton.experimental"])
        else:
            self.imports.append(module)

    def _module(self, node: ast.AST, module: str) -> None:
        self.imports.append(module)
        root = module.split(".")[0]
        if root in LIBRARIES or (root == "torch" and module not in ("torch", "torch.cuda")):
            self._refuse(LIBRARY, node, f"import of {module}: {NO_WORK}")
        elif root not in MODULES:
            self._refuse(UNAVAILABLE, node, f"import of {module}: only {OFFERED_MODULES}")
        elif root == "triton":
            self._triton_parts(node, [module] if module != "triton" else [])

    def _triton_parts(self, node: ast.AST, modules: list[str]) -> None:
        for module in modules:
            if not any(module == part or module.startswith(f"{part}.") for part in TRITON_PARTS):
                offered = ", ".join(("triton", *TRITON_PARTS))
                self._refuse(UNAVAILABLE, node, f"import of {module}: of triton, {offered}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside, self._in_kernel = self._in_kernel, self._in_kernel or _is_kernel(node)
        self.generic_visit(node)
        self._in_kernel = outside

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in REFUSED_NAMES:
            text = f"{node.id}: neither files nor code made at run time; write it out"
            self._refuse(UNAVAILABLE, node, text)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = _dotted(node)
        if node.attr.startswith("__") and node.attr.endswith("__"):
            self._refuse(UNAVAILABLE, node, f".{node.attr}: names of the interpreter are closed")
        elif dotted and dotted.split(".")[0] in self._torch:
            self._torch_name(node, "torch." + dotted.split(".", 1)[1])
            return
        self.generic_visit(node)

    def _torch_name(self, node: ast.AST, dotted: str) -> None:
        _, name, *rest = [*dotted.split("."), ""]
        inner = rest[0] if rest else ""
        inside_cuda = name == "cuda" and bool(inner)
        if inner in TORCH_CUDA_NAMES if inside_cuda else name in TORCH_NAMES:
            return
        if name in TORCH_NAMES_WITHOUT_WORK:
            self._refuse(UNAVAILABLE, node, f"{dotted}: {OFFERED_TORCH}")
        else:
            self._refuse(LIBRARY, node, f"{dotted}: {NO_WORK} ({OFFERED_TORCH})")

    def visit_Call(self, node: ast.Call) -> None:
        method = node.func
        if (
            not self._in_kernel
            and isinstance(method, ast.Attribute)
            and method.attr in TENSOR_WORK
            and (_dotted(method) or "").split(".")[0] not in self._torch
        ):
            self._refuse(LIBRARY, node, f".{method.attr}() on a tensor: {NO_WORK}")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.MatMult) and not self._in_kernel:
            self._refuse(LIBRARY, node, f"matrix product @ outside of a kernel: {NO_WORK}")
        self.generic_visit(node)
