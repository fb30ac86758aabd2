"""Write the answers of a scripted model, for `examples/scripted_endpoint.py` to serve.

    python examples/scripted/answers.py examples/scripted/gemm.toml FOLDER

makes FOLDER/<variant>/<trajectory>/<turn>.md, trajectories counted from 1 within their variant. A
kernel is a file of examples/kernels with edits, so that a fault differs from the working kernel in
one place. Raises ValueError for an edit whose old text is not there.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parents[1] / "kernels"
TURNS = 8


def source_of(name: str, kernel: dict[str, Any]) -> str:
    """The base file with its edits made."""
    text = (KERNELS / kernel["base"]).read_text()
    for old, new in kernel["edits"]:
        if text.count(old) != 1:
            raise ValueError(
                f"{name}: {old!r} is {text.count(old)} times in {kernel['base']}, not once"
            )
        text = text.replace(old, new)
    return text


def kernel_answer(name: str, kernel: dict[str, Any]) -> str:
    return f"{kernel['says']}\n\n```cuda\n{source_of(name, kernel)}```\n"


def files_of(name: str, script: dict[str, Any]) -> dict[str, str]:
    """Ending of the file: its text."""
    if name in script["kernels"]:
        return {".md": kernel_answer(name, script["kernels"][name])}
    answer = script["answers"][name]
    if "kernel" in answer:
        whole = kernel_answer(answer["kernel"], script["kernels"][answer["kernel"]])
        return {".md": whole[: answer["characters"]]}
    files = {".md": answer.get("text", "").lstrip()}
    if "reasoning" in answer:
        files[".reasoning.md"] = answer["reasoning"]
    return files


def write(script: dict[str, Any], folder: Path) -> int:
    """Number of answers written."""
    seen: Counter[str] = Counter()
    count = 0
    for trajectory in script["trajectory"]:
        variant, names = trajectory["variant"], trajectory["turns"]
        if len(names) != TURNS:
            raise ValueError(f"a trajectory of {variant} has {len(names)} turns, not {TURNS}")
        seen[variant] += 1
        place = folder / variant / str(seen[variant])
        place.mkdir(parents=True, exist_ok=True)
        for turn, name in enumerate(names):
            for ending, text in files_of(name, script).items():
                (place / f"{turn}{ending}").write_text(text)
            count += 1
    return count


def main() -> int:
    if len(sys.argv) != 3:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    script = tomllib.loads(Path(sys.argv[1]).read_text())
    print(f"{write(script, Path(sys.argv[2]))} answers in {sys.argv[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
