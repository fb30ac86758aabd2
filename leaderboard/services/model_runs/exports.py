"""A trajectory to take home: our own JSON, mini-swe-agent 1.1, or a FlashInfer trace set."""

import json
from collections.abc import Callable
from typing import Any

from evaluator import HARNESS_VERSION
from evaluator.records.export import evaluation_to_trace
from evaluator.records.solutions import candidate_to_solution
from evaluator.records.verdicts import Verdict
from leaderboard.models import Trajectory, Turn
from leaderboard.services.model_runs.outcomes import state_of

EXIT_STATUS = {
    Trajectory.Ending.TARGET_MET: "Submitted",
    Trajectory.Ending.TURNS_USED: "LimitsExceeded",
    Trajectory.Ending.BUDGET: "LimitsExceeded",
    Trajectory.Ending.OUT_OF_CONTEXT: "ContextWindowExceededError",
    Trajectory.Ending.CANCELLED: "UserInterruption",
    Trajectory.Ending.ENDPOINT_ERROR: "APIError",
    Trajectory.Ending.INFRA: "InfrastructureError",
}
EVENTS = {
    Verdict.BANNED_LIBRARY: "library_banned",
    Verdict.COMPILE_ERROR: "test_failed",
    Verdict.ENTRY_POINT_MISSING: "test_failed",
}


def trajectory_export(trajectory: Trajectory, format_name: str) -> dict[str, Any]:
    """Raises KeyError for a format that FORMATS does not name."""
    return FORMATS[format_name](trajectory, turns_of(trajectory))


def turns_of(trajectory: Trajectory) -> list[Turn]:
    """As they were stored, excluded ones among them."""
    rows = trajectory.turns.select_related("submission__problem", "submission__entrant")
    return list(rows.order_by("pk"))


def turn_record(turn: Turn) -> dict[str, Any]:
    """Everything of a turn; the digests of its chain verify against it."""
    return {
        "number": turn.number,
        "repeat": turn.repeat,
        "state": state_of(turn),
        "request": {
            "sha256": turn.request_digest,
            "byte_count": turn.request_byte_count,
            "body": turn.request_bytes.decode("utf-8", "replace"),
        },
        "reply": turn.reply_text,
        "answer": turn.answer,
        "reasoning": turn.reasoning,
        "source": turn.source,
        "submission": str(turn.submission_id) if turn.submission_id else None,
        "is_shared": turn.is_shared,
        "cost_usd": turn.cost_usd,
        "call": turn.call_record,
        "outcome": turn.outcome_record,
        "previous_digest": turn.previous_digest,
        "call_digest": turn.call_digest,
        "digest": turn.digest,
    }


def _ptxboard(trajectory: Trajectory, turns: list[Turn]) -> dict[str, Any]:
    run = trajectory.run
    return {
        "format": "ptxboard.trajectory/1",
        "run": {**run.settings_record, "digest": run.digest},
        "trajectory": {
            "id": str(trajectory.pk),
            "variant": trajectory.variant.slug,
            "number": trajectory.number,
            "state": trajectory.state,
            "ending": trajectory.ending or None,
            "reason": trajectory.reason,
        },
        "base_messages": trajectory.variant.messages,
        "turns": [turn_record(turn) for turn in turns],
    }


def _mini_swe_agent(trajectory: Trajectory, turns: list[Turn]) -> dict[str, Any]:
    """The layout of mini-swe-agent 1.1 as PTXBench writes it; excluded turns are not in it."""
    run, counted = trajectory.run, [turn for turn in turns if not turn.excluded]
    status = EXIT_STATUS.get(Trajectory.Ending(trajectory.ending), "") if trajectory.ending else ""
    best = max((turn for turn in counted if turn.speedup), key=_speedup, default=None)
    submission = (best.source if best else None) or ""
    messages = [*trajectory.variant.messages]
    for turn in counted:
        messages += [_assistant(turn), _observation(turn, run.target_speedup)]
    if status:
        extra = {"exit_status": status, "submission": submission}
        messages.append({"role": "exit", "content": trajectory.reason, "extra": extra})
    return {
        "info": {
            "model_stats": {
                "instance_cost": sum(turn.cost_usd or 0.0 for turn in turns),
                "api_calls": len(turns),
            },
            "config": _config(trajectory),
            "mini_version": f"ptxboard {HARNESS_VERSION}",
            "exit_status": status,
            "submission": submission,
        },
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
    }


def _speedup(turn: Turn) -> float:
    return turn.speedup or 0.0


def _config(trajectory: Trajectory) -> dict[str, Any]:
    run = trajectory.run
    return {
        "agent": {
            "step_limit": run.turn_count,
            "target_speedup": run.target_speedup,
            "prompt_tag": trajectory.variant.slug,
            "context_policy": run.policy,
        },
        "agent_type": "ptxboard.agent",
        "model": {"model_name": run.model, "model_kwargs": run.parameters},
        "model_type": run.api,
        "environment": {"definition": run.problem.name, "target": run.target},
        "environment_type": "ptxboard.evaluator",
    }


def _assistant(turn: Turn) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": turn.answer,
        "extra": {
            "actions": [],
            "response": _json_or_text(turn.reply_text),
            "cost": turn.cost_usd or 0.0,
            "timestamp": turn.replied_at.timestamp(),
        },
    }


def _observation(turn: Turn, target_speedup: float) -> dict[str, Any]:
    passed = turn.verdict == Verdict.PASSED
    event = EVENTS.get(Verdict(turn.verdict), "evaluation") if turn.verdict else "no_code"
    return {
        "role": "user",
        "content": turn.feedback,
        "extra": {
            "raw_output": turn.feedback,
            "returncode": 0 if passed else 1,
            "timestamp": turn.closed_at.timestamp() if turn.closed_at else None,
            "exception_info": "",
            "event": event,
            "traces": _traces([turn]),
            "all_passed": passed,
            "min_speedup": turn.speedup,
            "target_met": passed and _speedup(turn) >= target_speedup,
            "ptxboard": {"turn": turn.number, "state": state_of(turn), "digest": turn.digest},
        },
    }


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _flashinfer(trajectory: Trajectory, turns: list[Turn]) -> dict[str, Any]:
    """Definition, a solution for each kernel and its trace; kernels that no stage ended have none.

    A language that FlashInfer's schema and ours do not share is refused. Raises ValueError.
    """
    counted = [turn for turn in turns if not turn.excluded and turn.submission]
    kernels = {turn.submission_id: turn for turn in counted}.values()
    record = trajectory.run.problem.record
    return {
        "definition": record.definition.model_dump(mode="json"),
        "workload": record.workload.model_dump(mode="json"),
        "solutions": [_solution(turn) for turn in kernels],
        "traces": _traces(list(kernels)),
    }


def _name(turn: Turn) -> str:
    return f"{turn.submission.problem.name}_{turn.submission.candidate_digest[:12]}"


def _solution(turn: Turn) -> dict[str, Any]:
    submission = turn.submission
    author = submission.entrant.display_name
    solution = candidate_to_solution(submission.candidate, name=_name(turn), author=author)
    return solution.model_dump(mode="json")


def _traces(turns: list[Turn]) -> list[dict[str, Any]]:
    return [
        evaluation_to_trace(
            turn.evaluation.record, turn.submission.problem.record, solution=_name(turn)
        ).model_dump(mode="json")
        for turn in turns
        if turn.evaluation is not None
    ]


FORMATS: dict[str, Callable[[Trajectory, list[Turn]], dict[str, Any]]] = {
    "ptxboard": _ptxboard,
    "mini-swe-agent": _mini_swe_agent,
    "flashinfer-trace": _flashinfer,
}
