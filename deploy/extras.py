"""Print the extras to install here: those named, and the CUDA toolkit's wheels where it lacks."""

import shutil
import sys
from pathlib import Path


def main() -> None:
    has_toolkit = shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()
    has_disassembler = shutil.which("cuobjdump") and shutil.which("nvdisasm")
    extras = [*sys.argv[1:]]
    if not has_toolkit:
        extras.append("toolkit")
    if not has_disassembler:
        extras.append("disassembler")
    print(",".join(extras))


main()
