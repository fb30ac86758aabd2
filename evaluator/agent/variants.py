"""Prompt variants: no schedule, and two schedules of the pack, as the PTXBench paper has them."""

from dataclasses import dataclass

from evaluator.records.problem import Family
from evaluator.targets import Arch
from packs.pack import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """`schedules` are slugs of the architecture's pack, in the order in which they are shown."""

    slug: str
    title: str
    schedules: tuple[str, ...] = ()


NO_SCHEDULE = Variant(slug="no-schedule", title="No schedule")


def _one(slug: str, title: str) -> Variant:
    return Variant(slug=slug, title=title, schedules=(slug,))


SCHEDULED: dict[tuple[Arch, Family], tuple[Variant, ...]] = {
    (Arch.HOPPER, Family.GEMM): (
        _one("multicast", "Multicast loads in a cluster"),
        _one("warp-specialisation", "Warp specialisation"),
    ),
    (Arch.HOPPER, Family.MHA_FORWARD): (
        _one("fa3-forward", "FlashAttention-3 forward"),
        _one("fa3-forward-pingpong", "FlashAttention-3 forward, two warpgroups in turn"),
    ),
    (Arch.HOPPER, Family.MHA_BACKWARD): (
        _one("fa3-backward", "FlashAttention-3 backward"),
        _one("fa3-backward-two-pass", "Backward in two passes"),
    ),
    (Arch.BLACKWELL, Family.GEMM): (
        _one("multicast", "Multicast loads in a cluster"),
        _one("tma-store", "Stores by TMA"),
    ),
    (Arch.BLACKWELL, Family.MHA_FORWARD): (
        _one("fa4-forward", "FlashAttention-4-like forward"),
        _one("fa4-forward-lazy", "FlashAttention-4-like forward, lazy rescaling"),
    ),
    (Arch.BLACKWELL, Family.MHA_BACKWARD): (
        _one("fa4-backward", "FlashAttention-4-like backward"),
        _one("fa4-backward-two-kernels", "Backward in two kernels"),
    ),
}


def variants_for(
    family: Family | str, architecture: Arch | str, level: Level | str = Level.SCHEDULE
) -> tuple[Variant, ...]:
    """The variants of a run, NO_SCHEDULE first; only that one below level `schedule`."""
    place = (Arch(architecture), Family(family))
    if Level(level) is not Level.SCHEDULE:
        return (NO_SCHEDULE,)
    return (NO_SCHEDULE, *SCHEDULED.get(place, ()))


def find_variant(slug: str, family: Family | str, architecture: Arch | str) -> Variant:
    """Raises KeyError whose text lists the variants that there are."""
    known = variants_for(family, architecture)
    for variant in known:
        if variant.slug == slug:
            return variant
    names = ", ".join(variant.slug for variant in known)
    raise KeyError(f"variant {slug!r} is not known for this problem and target; known: {names}")
