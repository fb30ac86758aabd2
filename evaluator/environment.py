"""The machine that measures, as its records tell it. Nothing heavy is imported to find out."""

import hashlib
import importlib
import importlib.metadata
import platform
from pathlib import Path

from evaluator import HARNESS_VERSION
from evaluator.records.evaluation import Environment
from evaluator.sandbox import Sandbox
from evaluator.toolchain import Tool, Toolchain

PACKAGES = {
    "torch": ("torch",),
    "cudnn": ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    "cublas": ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12"),
    "cuda_runtime": ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    "cupti": ("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12"),
}


def describe_environment(toolchain: Toolchain, sandbox: Sandbox) -> Environment:
    """Versions and device of this machine; None for every part that is not here."""
    compiler = toolchain.nvcc or toolchain.gxx
    name = "nvcc" if toolchain.nvcc else "g++"
    return Environment(
        harness_version=HARNESS_VERSION,
        hostname_digest=hashlib.sha256(platform.node().encode()).hexdigest()[:16],
        operating_system=_operating_system(),
        python=platform.python_version(),
        compiler=f"{name} {compiler.version}" if compiler else None,
        nsight_compute=_version(toolchain.ncu),
        compute_sanitizer=_version(toolchain.compute_sanitizer),
        cuobjdump=_version(toolchain.cuobjdump),
        sandbox=sandbox.description,
        unsafe_no_sandbox=not sandbox.sandboxed,
        **{field: installed_version(*names) for field, names in PACKAGES.items()},
        **gpu_facts(),
    )


def installed_version(*names: str) -> str | None:
    """The version of the first distribution that is installed, None if none is."""
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def gpu_facts(index: int = 0) -> dict[str, str | None]:
    """`device_name`, `device_uuid` and `driver` by NVML; all None where there is no GPU."""
    nothing: dict[str, str | None] = dict.fromkeys(("device_name", "device_uuid", "driver"))
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # no package or no driver: both mean that there is nothing to tell
        return nothing
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        return {
            "device_name": str(nvml.nvmlDeviceGetName(handle)),
            "device_uuid": str(nvml.nvmlDeviceGetUUID(handle)),
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
        }
    except nvml.NVMLError:
        return nothing
    finally:
        nvml.nvmlShutdown()


def _operating_system() -> str:
    release = Path("/etc/os-release")
    names = {}
    if release.exists():
        pairs = (line.partition("=") for line in release.read_text().splitlines())
        names = {key: value.strip('"') for key, _, value in pairs}
    distribution = names.get("PRETTY_NAME", platform.system())
    return f"{distribution}, {platform.system()} {platform.release()}"


def _version(tool: Tool | None) -> str | None:
    return tool.version if tool else None
