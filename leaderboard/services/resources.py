"""Registers and shared memory of built kernels, read from the records of their compilation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import JSONField
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from evaluator.records.verdicts import Stage
from leaderboard.models import StageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The most that any kernel of a build takes, as the compiler reported it.

    registers      per thread
    shared_bytes   per block: static, and dynamic where the build knows it, as Triton's does
    spills         whether any kernel spills registers
    """

    registers: int
    shared_bytes: int
    spills: bool


def resources_by_job(jobs: Iterable[int]) -> dict[int, Resources]:
    """One query; the database takes the kernels out of the records, logs stay where they are.

    A job is missing where nothing was built for a GPU.
    """
    kernels = KeyTransform("kernels", KeyTransform("evidence", Cast("result_json", JSONField())))
    rows = StageRecord.objects.filter(
        stage=Stage.COMPILATION.value, attempt__job__in=list(jobs)
    ).values_list("attempt__job", kernels)
    return {job: found for job, listed in rows if (found := resources_of(listed or []))}


def resources_of(kernels: Iterable[Mapping[str, Any]]) -> Resources | None:
    """`kernels` are KernelResources as JSON; None where there is none."""
    known = list(kernels)
    if not known:
        return None
    return Resources(
        registers=max(one["registers"] for one in known),
        shared_bytes=max(
            one.get("static_shared_bytes", 0) + (one.get("dynamic_shared_bytes") or 0)
            for one in known
        ),
        spills=any(one.get("spill_store_bytes") or one.get("spill_load_bytes") for one in known),
    )
