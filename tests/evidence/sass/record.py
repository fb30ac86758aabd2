"""Record the disassembly of our own family kernels: `python tests/evidence/sass/record.py`."""

import datetime
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

from evaluator.toolchain import Toolchain

HERE = Path(__file__).parent
ARCHITECTURES = {"hopper": "sm_90a", "blackwell": "sm_100a"}


def main() -> None:
    for name, code in ARCHITECTURES.items():
        (HERE / f"{name}_families.json").write_text(json.dumps(record(name, code), indent=1) + "\n")


def record(name: str, code: str) -> dict[str, object]:
    tools = Toolchain.find()
    nvcc, cuobjdump = tools.need("nvcc"), tools.need("cuobjdump")
    source = HERE / "sources" / f"{name}.cu"
    compute = code.replace("sm_", "compute_")
    flags = ["-O3", "-std=c++17", "-gencode", f"arch={compute},code={code}", "-cubin"]
    with tempfile.TemporaryDirectory() as folder:
        cubin = f"{folder}/{name}.cubin"
        subprocess.run([nvcc.path, *flags, source, "-o", cubin], check=True)
        path = f"{tools.need('nvdisasm').path.parent}:/usr/bin"
        done = subprocess.run(
            [cuobjdump.path, "--dump-sass", cubin],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": path},
        )
    header = {
        "schema": "ptxboard.sass/1",
        "device": None,
        "tools": {"nvcc": nvcc.version, "cuobjdump": cuobjdump.version},
        "command": ["nvcc", *flags, f"sources/{name}.cu"],
        "date": datetime.date.today().isoformat(),
        "source_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
    }
    return {"header": header, "output": done.stdout}


if __name__ == "__main__":
    main()
