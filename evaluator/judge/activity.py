"""From a host's windows and device records to samples; the records are an untrusted word.

A record belongs to the window in which it starts, give or take what CUPTI's two clocks may be
apart; one that starts in none is a stray. Names of kernels never decide anything.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.demangling import demangled
from evaluator.host.cupti import KINDS, MAX_RECORDS
from evaluator.host.protocol import readable
from evaluator.records.evidence import KernelLaunch
from evaluator.sandbox import Sandbox

MAX_LAUNCHES = 200
# Windows are stamped on the host, records on the device; CUPTI's conversion drifts by microseconds.
# Generous to nobody: what lies beside its window still counts in the span.
CLOCK_SLACK_NS = 20_000
MAX_WINDOWS = 1000
NAME_CHARACTERS = 1000
KNOWN_KINDS = frozenset(KINDS.values())


class MalformedActivity(ValueError):
    """A record or window that is not what a host sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One thing that the device did; times on CUPTI's clock."""

    kind: str
    name: str
    start_ns: int
    end_ns: int
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None

    @property
    def stamped(self) -> bool:
        return 0 < self.start_ns <= self.end_ns and self.end_ns > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    label: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a window held; `span_ns` and `busy_ns` are 0 where nothing was stamped."""

    window: Window
    activities: tuple[Activity, ...]

    @property
    def span_ns(self) -> int:
        if not self.activities:
            return 0
        first = min(activity.start_ns for activity in self.activities)
        return max(activity.end_ns for activity in self.activities) - first

    @property
    def busy_ns(self) -> int:
        return sum(activity.end_ns - activity.start_ns for activity in self.activities)

    @property
    def launches(self) -> tuple[KernelLaunch, ...]:
        return launch_list(self.activities)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Everything of one collection; strays and records without times are told apart."""

    seen: Mapping[str, Seen]
    stray_count: int
    unstamped_count: int
    strays: tuple[str, ...] = field(default=())
    kernel_symbols: frozenset[str] = frozenset()


def attribute(windows: Sequence[Window], activities: Sequence[Activity]) -> Attribution:
    """Give each record to its window, or to the nearest one within CLOCK_SLACK_NS of both its ends.

    Windows do not overlap.
    """
    stamped = [activity for activity in activities if activity.stamped]
    inside: dict[str, list[Activity]] = {window.label: [] for window in windows}
    strays = []
    for activity in stamped:
        home = min(windows, key=lambda window: _outside_ns(window, activity), default=None)
        if home is None or _outside_ns(home, activity) > CLOCK_SLACK_NS:
            strays.append(activity.name)
        else:
            inside[home.label].append(activity)
    return Attribution(
        seen={w.label: Seen(window=w, activities=tuple(inside[w.label])) for w in windows},
        stray_count=len(strays),
        unstamped_count=len(activities) - len(stamped),
        strays=tuple(dict.fromkeys(strays))[:5],
        kernel_symbols=frozenset(one.name for one in activities if one.kind == "kernel"),
    )


def _outside_ns(window: Window, activity: Activity) -> int:
    """How far an activity reaches out of a window at either end; 0: it lies within."""
    return max(window.start_ns - activity.start_ns, activity.end_ns - window.end_ns, 0)


def readable_launches(
    launches: Sequence[KernelLaunch], sandbox: Sandbox
) -> tuple[KernelLaunch, ...]:
    """The same launches, kernels under the names that authors wrote."""
    names = demangled([launch.name for launch in launches if launch.kind == "kernel"], sandbox)
    return tuple(
        launch.model_copy(update={"name": names.get(launch.name, launch.name)})
        for launch in launches
    )


def launch_list(activities: Sequence[Activity]) -> tuple[KernelLaunch, ...]:
    """Equal launches counted together, in a fixed order."""
    counts = Counter((a.kind, a.name, a.grid, a.block) for a in activities)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], item[0][1], str(item[0])))
    return tuple(
        KernelLaunch(kind=kind, name=name, grid=grid, block=block, count=count)
        for (kind, name, grid, block), count in ordered[:MAX_LAUNCHES]
    )


def parse_windows(value: object) -> list[Window]:
    """Raises MalformedActivity."""
    return [
        Window(
            label=readable(item.get("label"), NAME_CHARACTERS),
            start_ns=_whole(item, "start"),
            end_ns=_whole(item, "end"),
        )
        for item in _objects(value, MAX_WINDOWS)
    ]


def parse_activities(value: object) -> list[Activity]:
    """Raises MalformedActivity."""
    return [
        Activity(
            kind=_kind(item.get("kind")),
            name=readable(item.get("name", "?"), NAME_CHARACTERS),
            start_ns=_whole(item, "start"),
            end_ns=_whole(item, "end"),
            grid=_triple(item.get("grid")),
            block=_triple(item.get("block")),
        )
        for item in _objects(value, MAX_RECORDS)
    ]


def _objects(value: object, most: int) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise MalformedActivity("expected a list of objects")
    if len(value) > most:
        raise MalformedActivity(f"{len(value)} entries of a list, at most {most}")
    return value


def _kind(value: object) -> str:
    if not isinstance(value, str) or value not in KNOWN_KINDS:
        raise MalformedActivity(f"kind: expected one of {sorted(KNOWN_KINDS)}")
    return value


def _whole(item: Mapping[str, Any], key: str) -> int:
    number = item.get(key)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 64:
        raise MalformedActivity(f"{key}: expected a time in nanoseconds, got {str(number)[:40]!r}")
    return number


def _triple(value: object) -> tuple[int, int, int] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 3 and all(_is_extent(v) for v in value):
        return (value[0], value[1], value[2])
    raise MalformedActivity("expected three whole numbers for a grid or block")


def _is_extent(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32
