"""What came of every turn in one cell of a board, trajectory by trajectory."""

from itertools import groupby

from evaluator.metrics.states import TurnState, turn_state
from evaluator.records.verdicts import Verdict
from leaderboard.models import ModelStanding, Turn

MOST_TURNS = 20_000


def states_of(standing: ModelStanding) -> list[list[TurnState]]:
    """One query; turns lost to us are left out, verdicts are those that the model was told."""
    turns = Turn.objects.filter(
        trajectory__run__entrant=standing.entrant_id,
        trajectory__run__problem__name=standing.problem_name,
        trajectory__run__problem__measured_digest=standing.measured_digest,
        trajectory__run__target=standing.target,
        trajectory__run__language=standing.language,
        trajectory__run__level=standing.level.removesuffix("+guidance"),
        trajectory__run__guidance=standing.level.endswith("+guidance"),
        trajectory__run__scoring_version=standing.scoring_version,
        trajectory__run__trust=standing.trust,
        trajectory__run__unranked_reason="",
        closed_at__isnull=False,
        excluded=False,
    ).order_by("trajectory_id", "number")
    rows = turns.values_list("trajectory_id", "verdict")[:MOST_TURNS]
    return [
        [turn_state(Verdict(verdict) if verdict else None) for _, verdict in some]
        for _, some in groupby(rows, key=lambda row: row[0])
    ]
