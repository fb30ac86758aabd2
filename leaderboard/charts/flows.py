"""Trajectories as ribbons between what came of each turn and of the next: an alluvial drawing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.metrics.states import TurnState, counts_by_turn, transitions

WIDTH, TOP, TALL = 960, 26, 250
LEFT, RIGHT = 96, 836
BAR, GAP, SMALLEST_LABEL = 22, 4, 12
MOST_TURNS = 12

CSS = {
    TurnState.CORRECT: "st-correct",
    TurnState.WRONG: "st-wrong",
    TurnState.RUNTIME: "st-runtime",
    TurnState.BUILD: "st-build",
    TurnState.NO_CODE: "st-none",
    TurnState.ENDED: "st-ended",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Trajectories in one state at one turn; places on the canvas are text."""

    state: TurnState
    count: int
    x: int
    y: str
    height: str
    middle: str

    @property
    def css(self) -> str:
        return CSS[self.state]

    @property
    def has_label(self) -> bool:
        return float(self.height) >= SMALLEST_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Ribbon:
    path: str
    css: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """`counts` by turn and `moves` between any two turns are the numbers of the drawing."""

    blocks: tuple[Block, ...]
    ribbons: tuple[Ribbon, ...]
    columns: tuple[tuple[int, str], ...]
    last: tuple[Block, ...]
    counts: tuple[tuple[TurnState, tuple[int, ...]], ...]
    moves: tuple[tuple[TurnState, tuple[int, ...]], ...]
    states: tuple[TurnState, ...]
    trajectory_count: int
    height: int = TOP + TALL + 4


def flows_chart(trajectories: Sequence[Sequence[TurnState]], turns: int) -> Flows | None:
    """None without a trajectory or without a second turn to go to."""
    turns = min(turns, MOST_TURNS)
    if not trajectories or turns < 2:
        return None
    counts, moves = counts_by_turn(trajectories, turns), transitions(trajectories, turns)
    states = tuple(one for one in TurnState if any(found[one] for found in counts))
    unit = (TALL - GAP * (len(states) - 1)) / len(trajectories)
    columns = [_column(found, place, turns, unit) for place, found in enumerate(counts)]
    return Flows(
        blocks=tuple(block for column in columns for block in column.values()),
        ribbons=tuple(
            ribbon
            for place, found in enumerate(moves)
            for ribbon in _ribbons(found, columns[place], columns[place + 1], unit, place + 1)
        ),
        columns=tuple((_x(place, turns) + BAR // 2, str(place + 1)) for place in range(turns)),
        last=tuple(columns[-1].values()),
        counts=tuple((one, tuple(found[one] for found in counts)) for one in states),
        moves=_all_moves(moves, states),
        states=states,
        trajectory_count=len(trajectories),
    )


def _all_moves(
    moves: Sequence[Counter[tuple[TurnState, TurnState]]], states: Sequence[TurnState]
) -> tuple[tuple[TurnState, tuple[int, ...]], ...]:
    """From each state to each, over all turns; nothing leaves ENDED."""
    total: Counter[tuple[TurnState, TurnState]] = Counter()
    for found in moves:
        total.update(found)
    return tuple(
        (one, tuple(total[one, other] for other in states))
        for one in states
        if one is not TurnState.ENDED
    )


def _x(place: int, turns: int) -> int:
    return round(LEFT + (RIGHT - BAR - LEFT) * place / (turns - 1))


def _column(
    found: Counter[TurnState], place: int, turns: int, unit: float
) -> dict[TurnState, Block]:
    y, column = float(TOP), {}
    for state in TurnState:
        if not found[state]:
            continue
        height = found[state] * unit
        column[state] = Block(
            state=state,
            count=found[state],
            x=_x(place, turns),
            y=f"{y:.1f}",
            height=f"{height:.1f}",
            middle=f"{y + height / 2:.1f}",
        )
        y += height + GAP
    return column


def _ribbons(
    moves: Counter[tuple[TurnState, TurnState]],
    before: dict[TurnState, Block],
    after: dict[TurnState, Block],
    unit: float,
    turn: int,
) -> list[Ribbon]:
    """Stacked at both ends in the order of states, so that ribbons cross as little as they can."""
    leaving = {state: float(block.y) for state, block in before.items()}
    arriving = {state: float(block.y) for state, block in after.items()}
    found = []
    for one in before:
        for other in after:
            count = moves[one, other]
            if not count:
                continue
            x1, x2 = before[one].x + BAR, after[other].x
            path = _ribbon(x1, leaving[one], x2, arriving[other], count * unit)
            title = f"turn {turn} to {turn + 1}: {count} from {one} to {other}"
            found.append(Ribbon(path=path, css=CSS[one], title=title))
            leaving[one] += count * unit
            arriving[other] += count * unit
    return found


def _ribbon(x1: int, y1: float, x2: int, y2: float, height: float) -> str:
    middle = (x1 + x2) // 2
    return (
        f"M{x1} {y1:.1f}C{middle} {y1:.1f} {middle} {y2:.1f} {x2} {y2:.1f}v{height:.1f}"
        f"C{middle} {y2 + height:.1f} {middle} {y1 + height:.1f} {x1} {y1 + height:.1f}z"
    )
