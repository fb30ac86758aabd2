"""The board of a target as its page shows it: rows, triplets, panels, and addresses of choices."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qsl

from django.utils.http import urlencode

from evaluator.metrics.turns import THRESHOLDS, TURN_LIMITS, Triplet
from leaderboard.charts.fast_p import series_css
from leaderboard.models import ModelStanding
from leaderboard.services.standings import Cell, ModelRow, TargetBoard
from leaderboard.services.standings_filters import MEASURED, BoardFilters
from leaderboard.templatetags.triplets import is_known, triplet_text
from leaderboard.views.presenters.efforts import Efforts, efforts
from leaderboard.views.presenters.fast_p import Panel, Shown, panel

PAGE_ROWS = 25
CURVES_ON = 5
MOST_CURVES = 10
TRUST_GROUPS = {"measured": MEASURED, "all": tuple(ModelStanding.Trust.values)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """Texts of a cell's two lines, as in the paper; "" where there is no such line.

    reason  why the line of target instructions is missing
    """

    cell: Cell
    upper: str
    lower: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    row: ModelRow
    number: int
    covered: int
    rates: tuple[CellView | None, ...]
    bests: tuple[CellView | None, ...]
    is_mine: bool
    is_drawn: bool

    @property
    def css(self) -> str:
        return series_css(self.number)

    @property
    def conditions(self) -> str:
        return conditions_of(self.row)


@dataclass(frozen=True, kw_only=True)
class TargetBoardView:
    """`shown` are the ranked rows of this page; published rows stand below all of them."""

    board: TargetBoard
    shown: tuple[RowView, ...]
    published: tuple[RowView, ...]
    panels: tuple[Panel, ...]
    efforts: Efforts
    drawn: tuple[str, ...]
    absent: int

    @property
    def filters(self) -> BoardFilters:
        return self.board.filters

    @property
    def has_families(self) -> bool:
        return bool(self.board.target.families)

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, self.board.titles[name]) for name in self.board.problems)

    @property
    def score_name(self) -> str:
        """What the table is ranked by: `Fast_0.9`."""
        return f"Fast_{self.filters.p:g}"

    @property
    def trust_name(self) -> str:
        return _trust_name(self.filters.trust)

    @cached_property
    def thresholds(self) -> tuple[tuple[str, str, bool], ...]:
        """(text, address, whether it is pinned) of each usual p."""
        return tuple((f"{p:g}", self.address(p=p), p == self.filters.p) for p in THRESHOLDS)

    @property
    def limits(self) -> tuple[tuple[int, str, bool], ...]:
        return tuple(
            (limit, self.address(at_most=limit), limit == self.filters.at_most)
            for limit in TURN_LIMITS
        )

    @property
    def sides(self) -> tuple[tuple[str, str, bool], ...]:
        """By which turns the table is ranked."""
        now = self.filters.instructions
        return (
            ("any instructions", self.address(instructions=False), not now),
            ("target instructions only", self.address(instructions=True), now),
        )

    def address(self, **changes: object) -> str:
        return f"?{query_of(replace(self.filters, **changes))}"  # type: ignore[arg-type]

    @property
    def hidden_fields(self) -> list[tuple[str, str]]:
        """The choices again, for a form that chooses something else."""
        return parse_qsl(query_of(self.filters))

    @property
    def query(self) -> str:
        """The choices of the address, ready to be followed by more."""
        text = query_of(self.filters)
        return f"{text}&" if text else ""


def conditions_of(row: ModelRow) -> str:
    """What the row's turns had in common, in a few words."""
    level = f"{row.level} pack" if row.level else "no pack"
    return f"{row.language}, {level.replace('+', ' + ')}"


def query_of(filters: BoardFilters) -> str:
    """The filters as a query that reads back to them; what is usual is left out."""
    usual, chosen = BoardFilters(), []
    for name in ("language", "level", "scoring_version", "p", "at_most"):
        value = getattr(filters, name)
        if value != getattr(usual, name):
            chosen.append((name, f"{value:g}" if isinstance(value, float) else value))
    chosen += [(name, "1") for name in ("complete", "instructions") if getattr(filters, name)]
    if filters.trust != usual.trust:
        chosen.insert(0, ("trust", _trust_name(filters.trust)))
    return urlencode(chosen)


def _trust_name(trust: tuple[str, ...]) -> str:
    return next((name for name, group in TRUST_GROUPS.items() if group == trust), trust[0])


def series_numbers(keys: Sequence[str], drawn: Sequence[str]) -> dict[str, int]:
    """Colours: those that are drawn together first, so that they differ, whatever their rank."""
    ordered = sorted(keys, key=lambda key: (key not in drawn, key))
    return {key: place for place, key in enumerate(ordered)}


def target_board_view(
    board: TargetBoard, *, mine: frozenset[int], page: int, on: Sequence[str]
) -> TargetBoardView:
    """One query, for the curves that are drawn.

    mine  entrants of whoever looks
    on    keys of the rows whose curves are drawn; the first few without any
    """
    ranked = board.ranked
    by_key = {row.key: row for row in ranked}
    asked = [key for key in dict.fromkeys(on) if key in by_key][:MOST_CURVES]
    drawn = asked or [row.key for row in ranked[:CURVES_ON]]
    numbers = series_numbers([row.key for row in board.rows], drawn)

    def view(row: ModelRow) -> RowView:
        return row_view(row, board, numbers[row.key], row.entrant.pk in mine, row.key in drawn)

    start = (page - 1) * PAGE_ROWS
    return TargetBoardView(
        board=board,
        shown=tuple(map(view, ranked[start : start + PAGE_ROWS])),
        published=tuple(map(view, board.published[:PAGE_ROWS])),
        panels=panels(board, [row for row in ranked if row.key in drawn], numbers),
        efforts=efforts(board, ranked[start : start + PAGE_ROWS], numbers),
        drawn=tuple(drawn),
        absent=len(set(on)) - len(asked),
    )


def row_view(
    row: ModelRow, board: TargetBoard, number: int, is_mine: bool, is_drawn: bool
) -> RowView:
    cells = [row.cells.get(name) for name in board.problems]
    has_families = bool(board.target.families)
    return RowView(
        row=row,
        number=number,
        covered=sum(cell is not None for cell in cells),
        rates=tuple(cell and _rates(cell, has_families) for cell in cells),
        bests=tuple(cell and _bests(cell, has_families) for cell in cells),
        is_mine=is_mine,
        is_drawn=is_drawn,
    )


def _rates(cell: Cell, has_families: bool) -> CellView:
    return _cell(cell, cell.target_rates, cell.rates, has_families, "rate")


def _bests(cell: Cell, has_families: bool) -> CellView:
    return _cell(cell, cell.target_bests, cell.bests, has_families, "best")


def _cell(cell: Cell, target: Triplet, any_: Triplet, has_families: bool, name: str) -> CellView:
    known = has_families and (cell.knows_instructions or is_known(target))
    return CellView(
        cell=cell,
        upper=triplet_text(target, name) if known else "",
        lower=triplet_text(any_, name) if is_known(any_) or not known else "",
        reason="" if known or not has_families else "what its turns ran is not known",
    )


def panels(
    board: TargetBoard, rows: Sequence[ModelRow], numbers: dict[str, int]
) -> tuple[Panel, ...]:
    """One a problem that a drawn row has turns on; one query for all of their curves."""
    filters = board.filters
    cells = [cell for row in rows for cell in row.cells.values()]
    names = Counter(row.entrant.display_name for row in rows)
    curves = ModelStanding.objects.only("curve_json").in_bulk([one.standing for one in cells])

    def models(problem: str) -> Iterable[Shown]:
        for row in rows:
            cell = row.cells.get(problem)
            if cell is not None and cell.standing in curves:
                yield Shown(
                    key=row.key,
                    name=row.entrant.display_name,
                    note=conditions_of(row) if names[row.entrant.display_name] > 1 else "",
                    number=numbers[row.key],
                    turns=curves[cell.standing].curve,
                    knows_instructions=cell.knows_instructions,
                )

    found = ((name, tuple(models(name))) for name in board.problems)
    return tuple(
        panel(
            name,
            board.titles[name],
            shown,
            p=filters.p,
            at_most=filters.at_most,
            noise=board.target.noise_limit,
            has_families=bool(board.target.families),
        )
        for name, shown in found
        if shown
    )
