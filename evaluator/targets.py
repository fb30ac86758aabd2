"""The targets that candidates are built for and ranked on. A new GPU is one record here."""

from dataclasses import dataclass
from enum import StrEnum


class Arch(StrEnum):
    HOPPER = "hopper"
    BLACKWELL = "blackwell"
    X86_64 = "x86-64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A board never mixes two targets.

    peak_flops       dense bf16 tensor rate, FLOP/s, vendor's data sheet; None on `host`
    memory_bandwidth bytes/s, vendor's data sheet; None on `host`
    families         opcode families whose execution counts as target instructions
    multiprocessors  streaming multiprocessors, vendor's data sheet; None on `host`
    noise_limit      a speedup ranks if it is known to plus or minus this share
    """

    slug: str
    title: str
    arch: Arch
    gencode: str | None
    families: tuple[str, ...]
    languages: tuple[str, ...]
    bindings: tuple[str, ...]
    note: str
    runs_here: bool = True
    development: bool = False
    peak_flops: float | None = None
    memory_bandwidth: float | None = None
    multiprocessors: int | None = None
    noise_limit: float = 0.02

    @property
    def queue(self) -> str:
        return f"gpu.{self.slug}"

    @property
    def is_gpu(self) -> bool:
        return self.gencode is not None

    def bindings_of(self, language: str) -> tuple[str, ...]:
        """A traced Triton candidate becomes a library with the plain C entry point."""
        return ("c",) if language == "triton" else self.bindings


HOPPER_FAMILIES = ("GMMA", "UTMALDG", "UTMASTG", "UTMAREDG")
BLACKWELL_FAMILIES = ("UTC", "LDTM", "STTM")

TARGETS: dict[str, Target] = {
    target.slug: target
    for target in (
        Target(
            slug="h200",
            title="NVIDIA H200",
            arch=Arch.HOPPER,
            gencode="arch=compute_90a,code=sm_90a",
            families=HOPPER_FAMILIES,
            languages=("cuda", "triton"),
            bindings=("c", "tvm-ffi"),
            note="Built for sm_90a and measured on an H200.",
            peak_flops=989e12,
            memory_bandwidth=4.8e12,
            multiprocessors=132,
        ),
        Target(
            slug="h100",
            title="NVIDIA H100",
            arch=Arch.HOPPER,
            gencode="arch=compute_90a,code=sm_90a",
            families=HOPPER_FAMILIES,
            languages=("cuda", "triton"),
            bindings=("c", "tvm-ffi"),
            note="The same binary as for the H200; memory is smaller and slower.",
            peak_flops=989e12,
            memory_bandwidth=3.35e12,
            multiprocessors=132,
        ),
        Target(
            slug="b200",
            title="NVIDIA B200",
            arch=Arch.BLACKWELL,
            gencode="arch=compute_100a,code=sm_100a",
            families=BLACKWELL_FAMILIES,
            languages=("cuda", "triton"),
            bindings=("c", "tvm-ffi"),
            note="Compiled for sm_100a and its SASS checked; the project has not run one yet.",
            runs_here=False,
            peak_flops=2.25e15,
            memory_bandwidth=8e12,
            multiprocessors=148,
        ),
        Target(
            slug="host",
            title="CPU (development target)",
            arch=Arch.X86_64,
            gencode=None,
            families=(),
            languages=("cpp",),
            bindings=("c",),
            note="The same pipeline on tensors in CPU memory; for development, CI and the demo.",
            development=True,
            noise_limit=0.35,
        ),
    )
}


def find_target(slug: str) -> Target:
    """The target called `slug`; raises KeyError whose text lists the known ones."""
    try:
        return TARGETS[slug]
    except KeyError:
        known = ", ".join(TARGETS)
        raise KeyError(f"target {slug!r} is not known; known targets: {known}") from None
