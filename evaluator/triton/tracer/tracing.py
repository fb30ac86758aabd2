"""Call the candidate's entry point once on stand-in tensors and write down what it launches."""

import ast
import importlib.util
import json
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from evaluator.triton.tracer.driver import Recorder, TracingDriver, names_are_unique
from evaluator.triton.tracer.tensors import DTYPES, Memory, Refused, Size, Tensor, strides_of
from evaluator.triton.tracer.torch_names import Properties, install

RECORD = "trace.json"
RESOURCES = re.compile(r"ptxas(?:-\w+)? info|.*bytes stack frame")
OTHER_OUTPUT_CHARACTERS = 8 << 10
LINE_CHARACTERS = 2000
MESSAGE_CHARACTERS = 1500


class Filtered:
    """stdout with ptxas' resource lines as they are; the rest is indented, as quoted, and cut."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._room = OTHER_OUTPUT_CHARACTERS
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._put(line)
        self._begun = self._begun[-LINE_CHARACTERS:]
        return len(text)

    def _put(self, line: str) -> None:
        if RESOURCES.match(line):
            self._stream.write(f"{line}\n")
        elif self._room > 0 and line.strip():
            self._stream.write(f"  {line[: self._room]}\n")
            self._room -= len(line)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False


def trace(specification: dict[str, Any], folder: Path) -> int:
    """0 with `trace.json` and the cubins in `folder`; 1 with an error line on stderr."""
    source = Path(specification["source"]).absolute()
    memory = Memory()
    recorder = Recorder(memory, folder)
    properties = Properties(**specification["device"])
    install(memory, properties)
    sys.stdout = Filtered(sys.stdout)
    import triton

    triton.runtime.driver.set_active(TracingDriver(recorder, properties))
    names_are_unique({})
    arguments = [_argument(memory, one) for one in specification["parameters"]]
    try:
        _load(source)[specification["entry"]](*arguments)
        if not any(one["kind"] == "launch" for one in recorder.operations):
            raise Refused(f"{specification['entry']} launched no kernel")
    except MemoryError:
        print("tracing ran out of memory", file=sys.stderr)
        return 1
    except BaseException as error:
        print(error_line(error, source), file=sys.stderr)
        return 1
    scratch = [one.byte_count for one in memory.storages if one.kind == "scratch"]
    record = {"kernels": recorder.kernels, "scratch": scratch, "operations": recorder.operations}
    (folder / RECORD).write_text(json.dumps(record))
    return 0


def _argument(memory: Memory, parameter: dict[str, Any]) -> Any:
    if parameter["shape"] is None:
        return parameter["value"]
    dtype, shape = DTYPES[parameter["dtype"]], Size(parameter["shape"])
    storage = memory.add("parameter", shape.numel() * dtype.itemsize)
    return Tensor(memory, storage, dtype, shape, strides_of(shape))


def _load(source: Path) -> dict[str, Any]:
    specification = importlib.util.spec_from_file_location(source.stem, source)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[source.stem] = module
    specification.loader.exec_module(module)
    return vars(module)


def error_line(error: BaseException, source: Path) -> str:
    """`kernel.py:12: error: text`, as compilers write it, and what Triton says besides."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    placed: list[BaseException] = [one for one in chain if _has_place(one)]
    line = _kernel_line(placed[-1], source) if placed else _line(error, source)
    said = bool(placed) and bool(getattr(placed[-1], "error_message", ""))
    text = _text(placed[-1] if said else chain[-1])
    place = f"{source.name}:{line}" if line else source.name
    first, *more = text[:MESSAGE_CHARACTERS].splitlines() or [type(chain[-1]).__name__]
    return "\n".join([f"{place}: error: {first}", *more])


def _has_place(error: BaseException) -> bool:
    return hasattr(getattr(error, "node", None), "lineno")


def _text(error: BaseException) -> str:
    said = str(getattr(error, "error_message", None) or error)
    name = type(error).__name__
    plain = isinstance(error, Refused) or name in ("OutOfResources", "CompilationError")
    return said if plain and said else f"{name}: {said}"


def _kernel_line(error: BaseException, source: Path) -> int | None:
    """Of an error in a kernel: Triton counts from the kernel's own `def`."""
    node, text = getattr(error, "node", None), getattr(error, "src", None)
    if node is None or not isinstance(text, str) or not hasattr(node, "lineno"):
        return None
    name = text.partition("def ")[2].partition("(")[0].strip()
    for one in ast.walk(ast.parse(source.read_text())):
        if isinstance(one, ast.FunctionDef) and one.name == name:
            return int(one.lineno + node.lineno - 1)
    return None


def _line(error: BaseException, source: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == source]
    return lines[-1] if lines else None
