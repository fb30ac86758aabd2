"""The state machine: calls, evaluations, feedback, endings, budgets, errors of the endpoint."""

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboard.endpoints.replies import Usage
from leaderboard.models import Entrant, ModelRun, Submission, Trajectory, Turn
from leaderboard.services.duties import reap, reconcile
from leaderboard.services.model_runs import advancing
from leaderboard.services.model_runs.budgets import usage_of
from leaderboard.tasks import advance_trajectory
from tests.leaderboard.runs import (
    RUNS,
    advance,
    evaluate,
    kernel,
    play,
    run_body,
    the_run,
    the_trajectory,
    turns,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def start(problems, alice_api, model):
    """Makes a run over REST; answers its JSON."""

    def make(**more):
        answer = alice_api.post(RUNS, run_body(model.url, **more), format="json")
        assert answer.status_code == 201, answer.content
        return answer.json()["runs"][0]

    return make


def test_a_run_goes_from_a_broken_kernel_to_its_target(start, model, machine, doorbell):
    model.say("fail compilation COMPILE_ERROR", "speedup 0.7", "speedup 1.3")
    start(turns=8)
    play(doorbell, machine)
    assert turns("number", "verdict", "speedup") == [
        (1, "COMPILE_ERROR", None),
        (2, "PASSED", pytest.approx(0.7)),
        (3, "PASSED", pytest.approx(1.3)),
    ]
    trajectory, run = the_trajectory(), the_run()
    assert (trajectory.state, trajectory.ending) == ("DONE", "TARGET_MET")
    assert trajectory.reason == "speedup 1.300 in turn 3, target 1.2"
    assert run.state == "DONE"
    assert run.started_at is not None
    assert run.ended_at is not None


def test_every_turn_keeps_the_bytes_that_were_sent_and_grows_by_answer_and_feedback(
    start, model, machine, doorbell
):
    model.say("fail compilation COMPILE_ERROR", "speedup 0.7", "speedup 0.8")
    start()
    play(doorbell, machine)
    first, second, third = Turn.objects.order_by("number")
    sent = [json.loads(turn.request_bytes)["messages"] for turn in (first, second, third)]
    assert [one["role"] for one in sent[0]] == ["system", "user"]
    assert [one["content"] for one in sent[0]] == [
        one["content"] for one in first.trajectory.variant.messages
    ]
    assert sent[1][:2] == sent[0]
    assert [one["content"] for one in sent[1][2:]] == [
        kernel("fail compilation COMPILE_ERROR").strip(),
        first.feedback,
    ]
    assert sent[2][:4] == sent[1]
    assert "COMPILE_ERROR" in first.feedback
    assert the_trajectory().ending == "TURNS_USED"


@pytest.mark.parametrize(
    ("policy", "roles"),
    [
        ("full", ["system", "user", "assistant", "user", "assistant", "user"]),
        ("latest-pair", ["system", "user", "assistant", "user"]),
        ("single-user", ["system", "user"]),
    ],
)
def test_a_runs_policy_decides_what_its_third_call_holds(
    start, model, machine, doorbell, policy, roles
):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    start(policy=policy)
    play(doorbell, machine)
    sent = json.loads(Turn.objects.get(number=3).request_bytes)["messages"]
    assert [one["role"] for one in sent] == roles
    assert "speedup 0.6" in "".join(one["content"] for one in sent)


@pytest.mark.parametrize("api", ["openai-responses", "anthropic-messages"])
def test_the_other_apis_do_as_well(start, model, machine, doorbell, api):
    model.say("speedup 0.5", "speedup 2.5")
    start(api=api, parameters={"max_tokens": 4000, "send_labels": True})
    play(doorbell, machine)
    assert turns("number", "verdict") == [(1, "PASSED"), (2, "PASSED")]
    assert all(turns("completion_tokens"))
    assert the_trajectory().ending == "TARGET_MET"


def test_a_models_submission_is_an_ordinary_one_of_the_models_entrant(
    start, model, machine, doorbell
):
    model.say("speedup 2.0")
    start()
    play(doorbell, machine)
    submission = Submission.objects.get()
    entrant = Entrant.objects.get(kind="model")
    assert (entrant.display_name, entrant.owner.get_username()) == ("scripted-1", "alice")
    assert submission.entrant == entrant
    assert submission.evaluation.speedup == pytest.approx(2.0)
    assert Turn.objects.get().submission == submission


def test_a_triton_kernel_is_handed_in_as_triton(start, model, doorbell):
    body = "import triton\n\n\ndef run(A, B, C):\n    pass\n"
    model.say_text(0, f"```python\n{body}```")
    start(target="h200", language="triton", variants=["no-schedule"])
    advance(doorbell)
    submission = Submission.objects.get()
    assert (submission.language, submission.binding) == ("triton", "c")
    assert submission.candidate.entry_file == "kernel.py"
    assert submission.candidate.sources[0].content.strip() == body.strip()


def test_an_answer_without_code_is_a_turn_with_its_own_feedback(start, model, machine, doorbell):
    model.say_text(0, "I would rather talk about tiles.")
    model.say_text(1, "```cpp\nint x;\n```")
    model.say_text(2, kernel("speedup 0.9"))
    start()
    play(doorbell, machine)
    assert turns("extraction_state", "verdict") == [
        ("NO_CODE", ""),
        ("NO_ENTRY_POINT", ""),
        ("EXTRACTED", "PASSED"),
    ]
    assert all(turns("feedback"))
    assert Submission.objects.count() == 1


def test_the_key_is_deleted_when_the_run_ends_and_was_never_stored_in_clear(
    start, model, machine, doorbell
):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    start()
    held = the_run().key_ciphertext
    assert held
    assert "canary" not in held
    play(doorbell, machine)
    run = the_run()
    assert run.key_ciphertext == ""
    assert run.key_deleted_at is not None


def test_the_same_kernel_again_is_not_evaluated_again_and_counts_for_both_turns(
    start, model, machine, doorbell
):
    model.say("speedup 0.5", "speedup 0.5", "speedup 0.6")
    start()
    play(doorbell, machine)
    assert turns("number", "is_shared", "verdict") == [
        (1, False, "PASSED"),
        (2, True, "PASSED"),
        (3, False, "PASSED"),
    ]
    assert Submission.objects.count() == 2


def test_a_kernel_that_was_evaluated_before_rings_its_trajectory_at_once(
    start, model, machine, doorbell
):
    model.say("speedup 0.5", "speedup 0.5")
    start(turns=2)
    advance(doorbell)
    evaluate(machine)
    trajectory_id = str(the_trajectory().pk)
    doorbell.rings.clear()
    advance_trajectory(trajectory_id)
    assert the_trajectory().state == "EVALUATING"
    rings = [("models", trajectory_id)] * 2  # the closed turn's, and the stored one's
    assert doorbell.rings == rings
    doorbell.rings.clear()
    advance_trajectory(trajectory_id)
    assert turns("verdict") == ["PASSED", "PASSED"]


def test_no_more_trajectories_are_active_than_the_run_may_have(start, model, machine, doorbell):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    start(trajectories=4, max_parallel=2)
    for _ in range(3):
        advance(doorbell)
        assert Trajectory.objects.active().count() == 2
    play(doorbell, machine)
    assert set(Trajectory.objects.values_list("ending", flat=True)) == {"TURNS_USED"}
    assert Turn.objects.count() == 12


def test_a_ring_too_many_takes_no_place_too_many(start, model, doorbell):
    model.say("speedup 0.5")
    start(trajectories=4, max_parallel=2)
    for pk in Trajectory.objects.values_list("pk", flat=True):
        advance_trajectory(str(pk))
    assert Trajectory.objects.active().count() == model.call_count == 2


def test_the_runs_of_one_user_share_their_places_and_all_come_to_their_end(
    start, model, machine, doorbell, settings, bob_api
):
    settings.PTXBOARD_PARALLEL_LIMIT = 2
    model.say("speedup 0.5", "speedup 0.6")
    start(trajectories=3, turns=2, name="first")
    start(trajectories=2, turns=2, name="second")
    bob_api.post(RUNS, run_body(model.url, trajectories=2, turns=2, name="of bob"), format="json")
    seen = []
    while advance(doorbell):
        active = Trajectory.objects.active().values_list("run__owner__username", flat=True)
        seen.append(Counter(active))
        evaluate(machine)
    assert seen[0] == {"alice": 2, "bob": 2}
    assert max(count for users in seen for count in users.values()) == 2
    assert set(Trajectory.objects.values_list("run__name", "ending")) == {
        ("first", "TURNS_USED"),
        ("second", "TURNS_USED"),
        ("of bob", "TURNS_USED"),
    }


def test_the_quota_of_kernels_does_not_hold_up_a_run(start, model, machine, doorbell, settings):
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 1
    for number in range(1, 4):
        model.say(f"speedup 0.{number}", trajectory=number)
    start(trajectories=3, turns=1)
    advance(doorbell)
    assert Submission.objects.in_flight().count() == 3


def test_a_lost_evaluation_is_excluded_and_its_turn_taken_again(
    start, model, machine, doorbell, no_delay
):
    model.say("speedup 0.5")
    start(turns=1)
    advance(doorbell)
    _fault(machine)
    advance(doorbell)
    lost = Turn.objects.get()
    assert lost.excluded
    assert "INFRA_ERROR" in lost.excluded_reason
    assert lost.feedback == ""
    _let_time_pass()
    reconcile()
    model.say("speedup 0.6")
    play(doorbell, machine)
    assert turns("number", "repeat", "excluded", "verdict") == [
        (1, 0, True, ""),
        (1, 1, False, "PASSED"),
    ]
    assert the_trajectory().ending == "TURNS_USED"
    assert usage_of(the_run(), timezone.now()).turns == 1


def test_a_turn_lost_three_times_ends_the_trajectory_as_ours(
    start, model, machine, doorbell, no_delay
):
    start(turns=2)
    for note in ("speedup 0.1", "speedup 0.2", "speedup 0.3"):
        model.say(note)
        advance(doorbell)
        _fault(machine)
        advance(doorbell)
        _let_time_pass()
        reconcile()
    trajectory = the_trajectory()
    assert (trajectory.state, trajectory.ending) == ("STOPPED", "INFRA")
    assert "lost to our infrastructure 3 times" in trajectory.reason
    assert the_run().state == "FAULTED"


def _fault(machine):
    for _ in range(3):
        order = machine.order()
        assert machine.complete(order, "faulted", "disk full").status_code == 200


def _let_time_pass(minutes=10):
    past = timezone.now() - timedelta(minutes=minutes)
    Trajectory.objects.update(doorbell_at=past)
    Trajectory.objects.exclude(next_at=None).update(next_at=past)


def test_a_busy_endpoint_is_asked_again_after_the_time_it_names(start, model, machine, doorbell):
    model.say("speedup 2.0")
    model.fail(0, '{"status": 429, "message": "busy", "retry_after": "120", "times": 1}')
    start()
    before = timezone.now()
    advance(doorbell)
    trajectory = the_trajectory()
    assert trajectory.state == "WAITING"
    assert trajectory.next_at >= before + timedelta(seconds=120)
    assert reconcile() == 0
    _let_time_pass()
    assert reconcile() == 1
    play(doorbell, machine)
    assert turns("number", "verdict") == [(1, "PASSED")]


def test_an_endpoint_that_keeps_failing_pauses_the_run_which_can_be_resumed(
    start, model, machine, doorbell, alice_api
):
    model.say("speedup 2.0")
    model.fail(0, '{"status": 503, "message": "no capacity", "times": 6}')
    made = start()
    for _ in range(5):
        advance(doorbell)
        _let_time_pass()
        reconcile()
    run = the_run()
    assert run.state == "PAUSED"
    assert "5 calls in a row failed" in run.reason
    assert run.reason.endswith("Resume the run to go on.")
    assert "no-schedule/1, turn 1" in run.reason
    assert run.key_ciphertext
    assert Turn.objects.count() == 0
    assert alice_api.post(f"{made['url']}resume/").status_code == 200
    advance(doorbell)
    assert the_run().state == "RUNNING"  # the sixth failure is the first after the resume
    _let_time_pass()
    reconcile()
    play(doorbell, machine)
    assert the_run().state == "DONE"
    assert turns("verdict") == ["PASSED"]


def test_a_wrong_key_pauses_at_once_and_another_key_goes_on(
    start, model, machine, doorbell, alice_api
):
    model.say("speedup 2.0")
    model.fail(0, '{"status": 401, "message": "bad key", "times": 1}')
    made = start()
    advance(doorbell)
    assert the_run().state == "PAUSED"
    assert "once that is mended, with another key if need be" in the_run().reason
    assert the_trajectory().state == "WAITING"
    answer = alice_api.post(f"{made['url']}resume/", {"key": "sk-another-key-77"}, format="json")
    assert answer.status_code == 200
    assert b"sk-another" not in answer.content
    play(doorbell, machine)
    assert the_run().state == "DONE"


def test_a_refused_request_pauses_a_run_that_has_no_turn_yet(start, model, doorbell):
    model.fail(0, '{"status": 400, "message": "unknown field top_k", "times": 1}')
    start(trajectories=2)
    advance(doorbell)
    assert the_run().state == "PAUSED"
    assert "unknown field top_k" in the_run().reason
    assert Trajectory.objects.open().count() == 2


def test_a_conversation_that_is_refused_ends_alone_where_others_were_taken(
    start, model, machine, doorbell
):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    place = model.folder / "default" / "2"
    place.mkdir()
    place.joinpath("1.error.json").write_text(
        '{"status": 400, "message": "this prompt was flagged", "times": 9}'
    )
    start(trajectories=2)
    play(doorbell, machine)
    assert list(Trajectory.objects.in_order().values_list("ending", flat=True)) == [
        "TURNS_USED",
        "ENDPOINT_ERROR",
    ]
    assert "this prompt was flagged" in Trajectory.objects.get(number=2).reason
    assert the_run().state == "DONE"


def test_a_full_context_ends_the_trajectory_and_nothing_else(start, model, machine, doorbell):
    model.say("speedup 0.5")
    model.fail(
        1, '{"status": 400, "message": "maximum context length is 32768 tokens", "times": 9}'
    )
    start()
    play(doorbell, machine)
    trajectory = the_trajectory()
    assert (trajectory.state, trajectory.ending) == ("DONE", "OUT_OF_CONTEXT")
    assert Turn.objects.count() == 1
    assert the_run().state == "DONE"


@pytest.mark.parametrize(
    ("budget", "words", "calls"),
    [
        ({"turns": 2}, "2 of 2 turns", 2),
        ({"tokens": 10}, "of 10 tokens", 1),
        ({"cost_usd": 0.000001}, "of 1e-06 US dollars", 1),
    ],
)
def test_a_used_up_budget_stops_every_trajectory_before_its_next_call(
    start, model, machine, doorbell, budget, words, calls
):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    start(trajectories=2, budget=budget, prices={"prompt_usd": 1, "completion_usd": 2})
    play(doorbell, machine)
    assert set(Trajectory.objects.values_list("ending", flat=True)) == {"BUDGET"}
    assert all(words in one for one in Trajectory.objects.values_list("reason", flat=True))
    assert Turn.objects.count() == model.call_count == calls
    assert the_run().state == "DONE"


def test_a_token_budget_that_cannot_be_kept_pauses_the_run_and_another_one_goes_on(
    start, model, machine, doorbell, monkeypatch, alice_api
):
    ask = advancing.complete

    def silent(*args, **kwargs):
        return ask(*args, **kwargs).model_copy(update={"usage": Usage()})

    monkeypatch.setattr(advancing, "complete", silent)
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    made = start(budget={"tokens": 1_000_000})
    play(doorbell, machine)
    run = the_run()
    assert run.state == "PAUSED"
    assert run.reason.startswith("the endpoint tells no token counts")
    assert Turn.objects.count() == 1
    body = {"budget": {"turns": 2}}
    assert alice_api.post(f"{made['url']}resume/", body, format="json").status_code == 200
    play(doorbell, machine)
    assert the_trajectory().ending == "BUDGET"
    assert Turn.objects.count() == 2
    assert usage_of(the_run(), timezone.now()).cost_usd is None


def test_a_wall_time_budget_counts_no_pause(start, model, machine, doorbell, alice_api):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    made = start(budget={"seconds": 60})
    advance(doorbell)
    alice_api.post(f"{made['url']}pause/")
    hour = timedelta(hours=1)
    run = the_run()
    ModelRun.objects.update(started_at=run.started_at - hour, paused_at=run.paused_at - hour)
    alice_api.post(f"{made['url']}resume/")
    play(doorbell, machine)
    assert the_trajectory().ending == "TURNS_USED"


def test_cost_and_tokens_are_added_up(start, model, machine, doorbell):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    start(prices={"prompt_usd": 10, "completion_usd": 100})
    play(doorbell, machine)
    used = usage_of(the_run(), timezone.now())
    assert used.turns == 3
    assert used.tokens == sum(turns("prompt_tokens")) + sum(turns("completion_tokens"))
    expected = (used.prompt_tokens * 10 + used.completion_tokens * 100) / 1e6
    assert used.cost_usd == pytest.approx(expected)
    assert used.unmetered_turns == 0


def test_pausing_lets_the_evaluation_end_and_makes_no_further_call(
    start, model, machine, doorbell, alice_api
):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    made = start()
    advance(doorbell)
    assert alice_api.post(f"{made['url']}pause/").json()["state"] == "PAUSED"
    assert alice_api.post(f"{made['url']}pause/").status_code == 200
    play(doorbell, machine)
    assert turns("number", "verdict") == [(1, "PASSED")]
    assert the_trajectory().state == "WAITING"
    assert reconcile() == 0
    assert alice_api.post(f"{made['url']}resume/").json()["state"] == "RUNNING"
    play(doorbell, machine)
    assert Turn.objects.count() == 3


def test_cancelling_ends_everything_and_deletes_the_key(start, model, machine, doorbell, alice_api):
    model.say("speedup 0.5")
    made = start(trajectories=2, max_parallel=1)
    advance(doorbell)
    answer = alice_api.post(f"{made['url']}cancel/").json()
    assert answer["state"] == "CANCELLED"
    assert answer["endpoint"]["key"] == "deleted"
    assert set(Trajectory.objects.values_list("ending", flat=True)) == {"CANCELLED"}
    turn = Turn.objects.get()
    assert turn.excluded
    assert turn.submission.state == "CANCELLED"
    assert alice_api.post(f"{made['url']}cancel/").status_code == 200
    assert (advance(doorbell), evaluate(machine), reconcile()) == (0, 0, 0)


def test_one_trajectory_is_paused_resumed_and_cancelled_alone(
    start, model, machine, doorbell, alice_api
):
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    made = start(trajectories=2)
    first, second = made["trajectories"]
    assert alice_api.post(f"{first['url']}pause/").json()["held"] is True
    assert alice_api.post(f"{second['url']}cancel/").json()["ending"] == "CANCELLED"
    play(doorbell, machine)
    assert Turn.objects.count() == 0
    assert the_run().is_open
    assert alice_api.post(f"{first['url']}resume/").json()["held"] is False
    play(doorbell, machine)
    assert Turn.objects.count() == 3
    run = the_run()
    assert run.state == "DONE"
    assert alice_api.post(f"{first['url']}cancel/").status_code == 409


def test_a_run_that_stays_paused_for_a_week_ends_and_its_key_goes(
    start, model, doorbell, alice_api
):
    made = start()
    alice_api.post(f"{made['url']}pause/")
    reap()
    assert the_run().state == "PAUSED"
    ModelRun.objects.update(paused_at=timezone.now() - timedelta(days=8))
    reap()
    run = the_run()
    assert (run.state, run.key_ciphertext) == ("CANCELLED", "")
    assert run.reason == "Paused for 7 days. It was: Paused by alice."


def test_the_chain_of_digests_covers_request_answer_and_outcome(start, model, machine, doorbell):
    model.say("fail compilation COMPILE_ERROR", "speedup 0.7", "speedup 0.8")
    start()
    play(doorbell, machine)
    run, chain = the_run(), list(Turn.objects.order_by("pk"))
    assert run.digest == run.settings_digest
    previous = run.digest
    for turn in chain:
        assert turn.previous_digest == previous
        assert turn.call_digest == turn.computed_call_digest
        assert turn.digest == turn.computed_digest
        previous = turn.digest
    for column, value in (("answer", "other"), ("finish_reason", "x"), ("prompt_tokens", 1)):
        Turn.objects.filter(pk=chain[1].pk).update(**{column: value})
        changed = Turn.objects.get(pk=chain[1].pk)
        assert changed.call_digest != changed.computed_call_digest
        Turn.objects.filter(pk=chain[1].pk).update(**{column: getattr(chain[1], column)})
    Turn.objects.filter(pk=chain[1].pk).update(feedback="well done")
    changed = Turn.objects.get(pk=chain[1].pk)
    assert changed.digest != changed.computed_digest
