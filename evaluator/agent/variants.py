"""Prompt variants: no schedule, and two schedules of the pack, as the PTXBench paper has them."""

from dataclasses import dataclass

from evaluator.records.problem import Family
from evaluator.targets import Arch
from packs.pack import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """`schedules` are slugs of the architecture's pack, in the order in which they are shown.

    The variant's own comes last, behind those that it builds on: a text never refers to one that
    is not shown.
    """

    slug: str
    title: str
    schedules: tuple[str, ...] = ()


NO_SCHEDULE = Variant(slug="no-schedule", title="No schedule")


def _variant(slug: str, title: str, after: tuple[str, ...] = ()) -> Variant:
    return Variant(slug=slug, title=title, schedules=(*after, slug))


SCHEDULED: dict[tuple[Arch, Family], tuple[Variant, ...]] = {
    (Arch.HOPPER, Family.GEMM): (
        _variant(
            "multicast",
            "Multicast loads in a cluster",
            after=("tma-store", "warp-specialisation"),
        ),
        _variant("warp-specialisation", "Warp specialisation", after=("tma-store",)),
    ),
    (Arch.HOPPER, Family.MHA_FORWARD): (
        _variant("fa3-forward", "FlashAttention-3 forward"),
        _variant(
            "fa3-forward-pingpong",
            "FlashAttention-3 forward, two warpgroups in turn",
            after=("fa3-forward",),
        ),
    ),
    (Arch.HOPPER, Family.MHA_BACKWARD): (
        _variant("fa3-backward", "FlashAttention-3 backward"),
        _variant("fa3-backward-two-pass", "Backward in two passes", after=("fa3-backward",)),
    ),
    (Arch.BLACKWELL, Family.GEMM): (
        _variant("multicast", "Multicast loads in a cluster"),
        _variant("tma-store", "Stores by TMA"),
    ),
    (Arch.BLACKWELL, Family.MHA_FORWARD): (
        _variant("fa4-forward", "FlashAttention-4-like forward"),
        _variant(
            "fa4-forward-lazy",
            "FlashAttention-4-like forward, lazy rescaling",
            after=("fa4-forward",),
        ),
    ),
    (Arch.BLACKWELL, Family.MHA_BACKWARD): (
        _variant("fa4-backward", "FlashAttention-4-like backward", after=("tma-store",)),
        _variant(
            "fa4-backward-two-kernels",
            "Backward in two kernels",
            after=("tma-store", "fa4-backward"),
        ),
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
