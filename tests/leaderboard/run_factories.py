"""Model runs for tests and for looking at pages: conversations that no model had."""

import json
import zlib
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from evaluator.agent.messages import Message, canonical_bytes
from evaluator.records.base import sha256_hex
from evaluator.records.verdicts import Stage, Verdict
from leaderboard.models import (
    ModelRun,
    Problem,
    RunVariant,
    Submission,
    Trajectory,
    Turn,
)
from leaderboard.services.entrants import model_entrant_of
from tests.leaderboard import factories

SYSTEM = "You write kernels for an H200.\n" + "An mbarrier has a phase.\n" * 200
FASTER = factories.KERNEL.replace("dim3(16, 16)", "dim3(32, 8)").replace("float sum", "double sum")
TASK = "Write the GEMM. Answer with one file."


def run(
    problem: Problem,
    *,
    owner: User,
    variants: tuple[str, ...] = ("no-schedule",),
    trajectories: int = 1,
    turns: int = 4,
    **columns: Any,
) -> ModelRun:
    """A running run on h200 with trajectories that wait."""
    model = columns.pop("model", "coder-32b")
    entrant = columns.pop("entrant", None) or model_entrant_of(owner=owner, model=model)
    made = ModelRun.objects.create(
        **{
            "owner": owner,
            "entrant": entrant,
            "name": f"{model} on {problem.name}",
            "model": model,
            "api": "openai-chat",
            "base_url": "https://models.example.org/secret-path/v1",
            "parameters": {"temperature": 0.7, "max_tokens": 32768},
            "problem": problem,
            "target": "h200",
            "language": "cuda",
            "binding": "c",
            "pack_name": "hopper",
            "pack_version": "1.0",
            "pack_digest": factories.SHA,
            "level": "schedule",
            "trajectory_count": trajectories,
            "turn_count": turns,
            "target_speedup": 1.2,
            "max_parallel": 4,
            "state": ModelRun.State.RUNNING,
            "harness_version": "1",
            "created_at": factories.NOW,
            "started_at": factories.NOW,
            **columns,
        }
    )
    for position, slug in enumerate(variants):
        packed = canonical_bytes(_base(slug))
        variant = RunVariant.objects.create(
            run=made,
            position=position,
            slug=slug,
            title=slug.replace("-", " ").capitalize(),
            schedules=[] if slug == "no-schedule" else [slug],
            packed_messages=zlib.compress(packed),
            digest=sha256_hex(packed),
        )
        for number in range(1, trajectories + 1):
            Trajectory.objects.create(
                run=made, variant=variant, number=number, created_at=factories.NOW
            )
    made.digest = made.settings_digest
    made.save()
    return made


def _base(slug: str) -> tuple[Message, Message]:
    return (
        Message(role="system", content=f"{SYSTEM}Variant: {slug}\n"),
        Message(role="user", content=TASK),
    )


def trajectory(run: ModelRun, number: int = 1, variant: str = "no-schedule") -> Trajectory:
    return run.trajectories.get(variant__slug=variant, number=number)


def turn(
    place: Trajectory,
    *,
    answer: str = "",
    kernel: str | None = None,
    results: list[Any] | None = None,
    speedup: float | None = None,
    feedback: str = "Keep optimizing.",
    excluded: str = "",
    number: int | None = None,
    **columns: Any,
) -> Turn:
    """The next turn, closed; with `kernel` its submission, evaluated to `results` or passed."""
    run, earlier = place.run, list(place.turns.order_by("pk"))
    counted = [one for one in earlier if not one.excluded]
    number = number or len(counted) + 1
    submission = _submission(run, kernel, results, speedup) if kernel is not None else None
    asked = factories.NOW + timedelta(minutes=3 * len(earlier))
    sent = columns.pop("request", None) or request(place, counted)
    made = Turn(
        **{
            "trajectory": place,
            "number": number,
            "repeat": sum(one.number == number for one in earlier),
            "parent": counted[-1] if counted else None,
            "packed_request": zlib.compress(sent),
            "request_digest": sha256_hex(sent),
            "request_byte_count": len(sent),
            "packed_reply": zlib.compress(json.dumps({"id": "reply"}).encode()),
            "reported_model": run.model,
            "answer": answer or (f"Here.\n\n```cuda\n{kernel}```\n" if kernel else "No idea."),
            "finish_reason": "stop",
            "prompt_tokens": 21_000,
            "completion_tokens": 1_500,
            "extraction_state": "EXTRACTED" if submission else "NO_CODE",
            "extraction_message": "block 1" if submission else "no fenced block holds code",
            "submission": submission,
            "called_at": asked,
            "replied_at": asked + timedelta(seconds=41),
            "previous_digest": earlier[-1].digest if earlier else run.digest,
            **columns,
        }
    )
    made.call_digest = made.computed_call_digest
    made.save()
    return close(made, feedback=feedback, excluded=excluded)


def close(turn: Turn, *, feedback: str, excluded: str = "") -> Turn:
    """What the site adds once the kernel has its verdict."""
    evaluation = turn.submission.evaluation if turn.submission else None
    if evaluation and not excluded:
        turn.verdict, turn.speedup = evaluation.verdict, evaluation.speedup
        turn.instruction_status = evaluation.instruction_status
        turn.evaluation_digest = evaluation.chain_digest
    turn.feedback = "" if excluded else feedback
    turn.excluded, turn.excluded_reason = bool(excluded), excluded
    turn.closed_at = turn.replied_at + timedelta(minutes=1)
    turn.digest = turn.computed_digest
    turn.save()
    return turn


def request(place: Trajectory, counted: list[Turn]) -> bytes:
    """The body of a chat completion that tells every turn so far."""
    messages = [*place.variant.messages]
    for one in counted:
        messages += [
            {"role": "assistant", "content": one.answer},
            {"role": "user", "content": one.feedback},
        ]
    body = {"model": place.run.model, "temperature": 0.7, "messages": messages}
    return json.dumps(body).encode()


def _submission(
    run: ModelRun, kernel: str, results: list[Any] | None, speedup: float | None
) -> Submission:
    made = factories.submission(
        by=run.entrant, problem=run.problem, name=f"{run.model} turn", source=kernel
    )
    stages = factories.stages(run.problem.record, speedup=speedup or 0.9)
    return factories.evaluated(made, results if results is not None else stages)


def worked(problem: Problem, owner: User) -> ModelRun:
    """Two variants by two trajectories of four turns: broken, slow, target met; one has no turn."""
    made = run(problem, owner=owner, variants=("no-schedule", "multicast"), trajectories=2)
    first = trajectory(made)
    broken = failed(made, "compilation", "COMPILE_ERROR", "error: no such name")
    turn(first, kernel=factories.KERNEL, results=broken, reasoning="Let me think.")
    turn(first, kernel=factories.KERNEL, excluded="the worker's disk was full")
    turn(first, kernel=FASTER, speedup=0.75, feedback="Correct; now faster.")
    turn(trajectory(made, 2), extraction_state="TRUNCATED", finish_reason="length")
    third = trajectory(made, 1, "multicast")
    turn(third, kernel=FASTER, speedup=1.31)
    end(third, "TARGET_MET", "speedup 1.310 in turn 1, target 1.2")
    return made


def turn_of(run: ModelRun, number: int, *, excluded: bool = False) -> Turn:
    """Of the first trajectory."""
    return trajectory(run).turns.get(number=number, excluded=excluded)


def failed(run: ModelRun, stage: str, verdict: str, message: str = "it fails") -> list[Any]:
    stages = factories.stages(run.problem.record)
    return factories.failing(stages, Stage(stage), Verdict(verdict), message)


def end(place: Trajectory, ending: str, reason: str = "") -> None:
    by_itself = ending in Trajectory.BY_THEMSELVES
    place.state = Trajectory.State.DONE if by_itself else Trajectory.State.STOPPED
    place.ending, place.reason = ending, reason
    place.ended_at = factories.NOW + timedelta(hours=1)
    place.save()


def finish(run: ModelRun, state: str = "DONE") -> ModelRun:
    for place in run.trajectories.open():
        end(place, "TURNS_USED", "all turns were taken")
    run.state, run.ended_at = state, factories.NOW + timedelta(hours=1)
    run.key_ciphertext, run.key_deleted_at = "", run.ended_at
    run.save()
    return run
