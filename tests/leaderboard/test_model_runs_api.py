"""Model runs by REST: what goes in, what is refused and how, what comes out, never the key."""

import io
import json
import logging

import pytest
from django.core.management import call_command
from django.db import connection
from django.urls import reverse

from leaderboard.models import AuditEntry, ModelRun, Trajectory
from leaderboard.services.model_runs.exports import FORMATS
from tests.leaderboard.bodies import pointers, problem_of
from tests.leaderboard.runs import KEY, RUNS, advance, play, run_body, the_run, the_trajectory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def post(problems, alice_api, model):
    def make(url=None, **more):
        body = {**run_body(url or model.url), **more}
        return alice_api.post(RUNS, {k: v for k, v in body.items() if v is not None}, format="json")

    return make


@pytest.fixture
def done(post, model, machine, doorbell):
    """A run of three turns that ended: broken, slow, slow with reasoning."""
    model.say("fail compilation COMPILE_ERROR", "speedup 0.7", "speedup 0.9")
    (model.folder / "default" / "2.reasoning.md").write_text("Larger tiles may help.")
    made = post(prices={"prompt_usd": 1, "completion_usd": 2}).json()["runs"][0]
    play(doorbell, machine)
    return made


def test_a_request_for_two_problems_makes_two_runs_of_one_batch(post):
    names = ["gemm_n256_k256", "mha_bwd_d64_small"]
    answer = post(problems=names, trajectories=4, turns=8)
    assert answer.status_code == 201
    body = answer.json()
    assert [run["problem"] for run in body["runs"]] == names
    assert {run["batch"] for run in body["runs"]} == {body["batch"]}
    assert body["calls_at_most"] == 2 * 1 * 4 * 8
    assert answer["Location"] == body["runs"][0]["url"]


def test_the_plan_is_shown_with_its_pack_and_prompt_digests(post):
    run = post(target="h200", problems=["gemm_n7168_k5120"], trajectories=4, turns=8).json()
    plan, pack = run["runs"][0]["plan"], run["runs"][0]["pack"]
    assert [one["slug"] for one in plan["variants"]] == [
        "no-schedule",
        "multicast",
        "warp-specialisation",
    ]
    assert plan["calls_at_most"] == run["calls_at_most"] == 3 * 4 * 8
    assert (pack["name"], pack["level"], len(pack["digest"])) == ("hopper", "schedule", 64)
    assert len({one["prompt_digest"] for one in plan["variants"]}) == 3
    assert len(run["runs"][0]["trajectories"]) == 12


def test_the_same_key_and_body_is_the_same_run_and_another_body_is_refused(
    alice_api, problems, model
):
    headers = {"Idempotency-Key": "once"}
    body = run_body(model.url)
    first = alice_api.post(RUNS, body, format="json", headers=headers)
    again = alice_api.post(RUNS, body, format="json", headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["runs"][0]["id"] == first.json()["runs"][0]["id"]
    rotated = alice_api.post(RUNS, {**body, "key": "sk-rotated-1"}, format="json", headers=headers)
    assert rotated.status_code == 200  # nothing is kept of a key, not even in a digest
    other = alice_api.post(RUNS, {**body, "turns": 5}, format="json", headers=headers)
    problem_of(other, 409)
    assert ModelRun.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "pointer", "words"),
    [
        ({"api": "gopher"}, "api", "openai-chat"),
        (
            {"base_url": "http://169.254.169.254/v1"},
            "base_url",
            "may not connect to 169.254.169.254",
        ),
        ({"base_url": "http://[::ffff:a9fe:a9fe]/v1"}, "base_url", "may not connect"),
        ({"base_url": "https://user:pw@example.org/v1"}, "base_url", "leave them out"),
        ({"base_url": "file:///etc/hosts"}, "base_url", "not a URL"),
        ({"base_url": None}, "base_url", "missing"),
        ({"model": " "}, "model", "1 to 200 printable characters"),
        ({"key": "two words"}, "key", "without spaces"),
        ({"key": 7}, "key", "string"),
        ({"problems": []}, "problems", "at least 1"),
        ({"problems": ["gemm_n256_k25"]}, "problems", "did you mean 'gemm_n256_k256'"),
        ({"problems": ["gemm_n256_k256"] * 2}, "problems", "named twice"),
        ({"target": "h300"}, "target", "h200"),
        ({"problems": ["gemm_n7168_k5120"]}, "target", "not offered there"),
        ({"language": "triton"}, "language", "cpp"),
        ({"binding": "torch"}, "binding", "host code in Python is not run"),
        ({"variants": ["multicast"]}, "variants", "no variant of gemm_n256_k256 on host"),
        ({"level": "contracts"}, "level", "no knowledge pack for host"),
        ({"level": "everything"}, "level", "schedule"),
        ({"trajectories": 0}, "trajectories", "greater than or equal to 1"),
        ({"trajectories": 17}, "trajectories", "less than or equal to 16"),
        ({"turns": 33}, "turns", "less than or equal to 32"),
        ({"target_speedup": 0}, "target_speedup", "greater than 0"),
        ({"policy": "none"}, "policy", "latest-pair"),
        ({"max_parallel": 65}, "max_parallel", "less than or equal to 64"),
        ({"budget": {"turns": 0}}, "budget.turns", "greater than 0"),
        ({"budget": {"cost_usd": 5}}, "budget.cost_usd", "needs 'prices'"),
        ({"parameters": {"temperature": 3}}, "parameters.temperature", "less than or equal to 2"),
        ({"parameters": {"thinking": {"type": "adaptive"}}}, "parameters", "no parameter thinking"),
        (
            {"parameters": {"extra_headers": {"Authorization": "x"}}},
            "parameters.extra_headers",
            "may not be set",
        ),
        ({"name": "a\nb"}, "name", "one line"),
        ({"kee": KEY}, "kee", "Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_quotes_no_key(post, change, pointer, words):
    answer = post(**change)
    body = problem_of(answer, 400)
    found = {error["pointer"]: error["message"] for error in body["errors"]}
    assert any(one == pointer or one.startswith(f"{pointer}[") for one in found), found
    assert words in " ".join(found.values()) + str([e.get("allowed") for e in body["errors"]])
    assert KEY not in answer.content.decode()
    assert "user:pw" not in answer.content.decode()
    assert ModelRun.objects.count() == 0


def test_everything_wrong_is_said_at_once(post):
    body = problem_of(post(turns=0, target_speedup=-1, api="x"), 400)
    assert set(pointers(body)) == {"api", "turns", "target_speedup"}


def test_open_runs_of_one_user_are_limited(post, settings):
    settings.PTXBOARD_RUN_LIMIT = 1
    assert post().status_code == 201
    body = problem_of(post(), 429)
    assert body["detail"].startswith("1 of your model runs are open and 1 more were asked for")


def test_reading_is_public_and_acting_is_its_owners_or_staffs(
    done, post, alice_api, bob_api, carol_api, visitor_api
):
    assert visitor_api.get(done["url"]).status_code == 200
    assert problem_of(visitor_api.post(RUNS, {}, format="json"), 401)
    made = post().json()["runs"][0]
    for action in ("pause", "resume", "cancel"):
        body = problem_of(bob_api.post(f"{made['url']}{action}/"), 403)
        assert "only alice or staff" in body["detail"]
    assert carol_api.post(f"{made['url']}cancel/").status_code == 200
    assert problem_of(alice_api.post(f"{made['url']}pause/"), 409)


def test_the_address_is_shown_to_the_owner_and_to_nobody_else(
    post, model, alice_api, bob_api, visitor_api
):
    url = post().json()["runs"][0]["url"]
    assert alice_api.get(url).json()["endpoint"]["base_url"] == model.url
    for api in (bob_api, visitor_api):
        answer = api.get(url)
        assert answer.json()["endpoint"]["base_url"] is None
        assert model.url not in answer.content.decode()


def test_the_list_is_filtered_and_a_word_that_nothing_matches_is_a_mistake(
    post, done, alice_api, bob_api
):
    post()
    listed = alice_api.get(RUNS).json()["results"]
    assert [row["state"] for row in listed] == ["QUEUED", "DONE"]
    assert len(alice_api.get(f"{RUNS}?state=DONE").json()["results"]) == 1
    assert len(alice_api.get(f"{RUNS}?mine=1").json()["results"]) == 2
    assert bob_api.get(f"{RUNS}?mine=1").json()["results"] == []
    assert len(alice_api.get(f"{RUNS}?batch={done['batch']}").json()["results"]) == 1
    problem_of(alice_api.get(f"{RUNS}?state=LATE"), 400)
    problem_of(alice_api.get(f"{RUNS}?batch=x"), 400)


def test_a_run_shows_its_grid_use_and_metrics(done, visitor_api):
    run = visitor_api.get(done["url"]).json()
    (row,) = run["trajectories"]
    assert (row["state"], row["ending"]) == ("DONE", "TURNS_USED")
    assert [turn["state"] for turn in row["turns"]] == ["COMPILE_ERROR", "PASSED", "PASSED"]
    assert [turn["speedup"] for turn in row["turns"]] == [None, *map(pytest.approx, (0.7, 0.9))]
    assert run["turn_counts"] == {"COMPILE_ERROR": 1, "PASSED": 2}
    assert run["used"]["turns"] == 3
    assert run["used"]["cost_usd"] > 0
    metrics = run["metrics"]
    assert (metrics["final"], metrics["planned_turns"], metrics["taken_turns"]) == (True, 3, 3)
    assert metrics["target_instructions"] is None
    rates = metrics["any"]["correctness_rate"]
    assert rates == {"first": 0.0, "fourth": pytest.approx(2 / 3), "eighth": pytest.approx(2 / 3)}
    assert [one["value"] for one in metrics["any"]["fast_p"]] == [
        pytest.approx(value) for value in (2 / 3, 2 / 3, 1 / 3, 0, 0)
    ]


def test_a_withdrawn_evaluation_is_no_success_any_more(done, visitor_api, carol):
    from leaderboard.models import Evaluation
    from leaderboard.services.evaluations import evaluation_correct

    fast = Evaluation.objects.get(speedup__gt=0.8)
    evaluation_correct(evaluation=fast, valid=False, reason="the clock was wrong", user=carol)
    metrics = visitor_api.get(done["url"]).json()["metrics"]
    assert metrics["any"]["best_speedup"]["eighth"] == pytest.approx(0.7)


def test_a_trajectory_and_a_turn_tell_everything(done, visitor_api):
    trajectory = visitor_api.get(done["trajectories"][0]["url"]).json()
    assert [one["role"] for one in trajectory["base_messages"]] == ["system", "user"]
    last = trajectory["turns"][2]
    assert last["reasoning"] == "Larger tiles may help."
    assert "speedup 0.9" in last["source"]
    assert last["feedback"].startswith("# Turn 3 of 3: PASSED")
    assert "request" not in last
    turn = visitor_api.get(last["url"]).json()
    sent = json.loads(turn["request"]["body"])
    assert len(sent["messages"]) == 6
    assert turn["call"]["finish_reason"] == "stop"
    assert turn["outcome"]["verdict"] == "PASSED"
    assert problem_of(visitor_api.get("/api/v1/turns/999999/"), 404)


def test_our_export_verifies_by_its_own_content(done, visitor_api):
    from leaderboard.models.stage_record import chained_digest

    url = f"/api/v1/trajectories/{the_trajectory().pk}/export/"
    answer = visitor_api.get(url)
    assert "attachment" in answer["Content-Disposition"]
    value = answer.json()
    previous = value["run"]["digest"]
    for turn in value["turns"]:
        assert turn["previous_digest"] == previous
        assert chained_digest(previous, turn["call"]) == turn["call_digest"]
        assert chained_digest(turn["call_digest"], turn["outcome"]) == turn["digest"]
        previous = turn["digest"]


def test_the_mini_swe_agent_export_has_that_programs_layout(done, visitor_api):
    url = f"/api/v1/trajectories/{the_trajectory().pk}/export/?format=mini-swe-agent"
    value = visitor_api.get(url).json()
    assert set(value) == {"info", "messages", "trajectory_format"}
    assert value["trajectory_format"] == "mini-swe-agent-1.1"
    assert set(value["info"]) == {
        "model_stats",
        "config",
        "mini_version",
        "exit_status",
        "submission",
    }
    assert set(value["info"]["config"]) == {
        "agent",
        "agent_type",
        "model",
        "model_type",
        "environment",
        "environment_type",
    }
    assert value["info"]["exit_status"] == "LimitsExceeded"
    assert value["info"]["model_stats"]["api_calls"] == 3
    assert "speedup 0.9" in value["info"]["submission"]
    roles = [message["role"] for message in value["messages"]]
    assert roles == ["system", "user", *["assistant", "user"] * 3, "exit"]
    seen = [message["extra"] for message in value["messages"][3:8:2]]
    assert [one["event"] for one in seen] == ["test_failed", "evaluation", "evaluation"]
    assert [one["all_passed"] for one in seen] == [False, True, True]
    assert value["messages"][2]["extra"]["response"]["usage"]["prompt_tokens"] > 0


def test_a_turn_that_was_lost_is_in_our_export_alone(
    post, model, machine, doorbell, no_delay, visitor_api
):
    model.say("speedup 0.5")
    post(turns=1)
    advance(doorbell)
    for _ in range(3):
        machine.complete(machine.order(), "faulted", "disk full")
    advance(doorbell)
    url = f"/api/v1/trajectories/{the_trajectory().pk}/export/"
    (lost,) = visitor_api.get(url).json()["turns"]
    assert (lost["state"], lost["outcome"]["excluded"]) == ("EXCLUDED", True)
    theirs = visitor_api.get(f"{url}?format=mini-swe-agent").json()
    assert [one["role"] for one in theirs["messages"]] == ["system", "user"]
    assert theirs["info"]["model_stats"]["api_calls"] == 1
    assert visitor_api.get(f"{url}?format=flashinfer-trace").json()["solutions"] == []


def test_the_flashinfer_export_reads_back_as_solutions_and_traces(done, visitor_api):
    from evaluator.records.flashinfer import Solution, Trace

    url = f"/api/v1/trajectories/{the_trajectory().pk}/export/?format=flashinfer-trace"
    value = visitor_api.get(url).json()
    solutions = [Solution.model_validate(one) for one in value["solutions"]]
    traces = [Trace.model_validate(one) for one in value["traces"]]
    assert [trace.solution for trace in traces] == [one.name for one in solutions]
    assert [trace.evaluation.status.value for trace in traces] == [
        "COMPILE_ERROR",
        "PASSED",
        "PASSED",
    ]
    body = problem_of(
        visitor_api.get(f"/api/v1/trajectories/{the_trajectory().pk}/export/?format=x"), 400
    )
    assert list(FORMATS) == body["errors"][0]["allowed"]


def test_a_connection_is_tested_without_storing_anything(post, alice_api, visitor_api, model):
    model.say("speedup 1.0")
    wanted = {name: run_body(model.url)[name] for name in ("api", "base_url", "model", "key")}
    url = reverse("api:test-connection")
    answer = alice_api.post(url, wanted, format="json").json()
    assert answer["ok"] is True, answer
    refused = {**wanted, "base_url": "http://10.0.0.5/v1"}
    assert pointers(problem_of(alice_api.post(url, refused, format="json"), 400)) == ["base_url"]
    assert problem_of(visitor_api.post(url, wanted, format="json"), 401)
    assert ModelRun.objects.count() == 0


def test_a_key_is_in_no_answer_log_audit_entry_and_row(
    post, model, machine, doorbell, alice_api, caplog, settings
):
    caplog.set_level(logging.DEBUG)
    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    model.fail(1, json.dumps({"status": 500, "message": f"bad key {KEY}", "times": 1}))
    model.fail(2, json.dumps({"status": 401, "message": f"no such key {KEY}", "times": 1}))
    made = post().json()["runs"][0]
    play(doorbell, machine)
    Trajectory.objects.update(next_at=None)
    from leaderboard.services.duties import reconcile

    reconcile()
    play(doorbell, machine)
    run = the_run()
    assert run.state == "PAUSED"
    seen = [
        repr(run),
        str(run),
        alice_api.get(made["url"]).content.decode(),
        alice_api.get(made["trajectories"][0]["url"]).content.decode(),
        caplog.text,
        *AuditEntry.objects.values_list("detail_json", flat=True),
        dumped(),
    ]
    assert all(KEY not in text for text in seen)
    assert run.key_ciphertext not in "".join(seen[:-1])


def dumped() -> str:
    out = io.StringIO()
    call_command("dumpdata", "leaderboard", stdout=out)
    return out.getvalue()


def test_a_pack_that_changes_does_not_change_a_run(post, model, machine, doorbell, monkeypatch):
    from evaluator.agent import prompt

    model.say("speedup 0.5", "speedup 0.6", "speedup 0.7")
    post()
    before = the_run().digest
    base = the_trajectory().variant.messages
    monkeypatch.setattr(prompt, "_role", lambda *args: "Another role.")
    play(doorbell, machine)
    trajectory = the_trajectory()
    for turn in trajectory.turns.all():
        assert json.loads(turn.request_bytes)["messages"][0]["content"] == base[0]["content"]
    assert the_run().settings_digest == before


def test_a_run_is_read_in_few_queries(done, visitor_api, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        assert visitor_api.get(done["url"]).status_code == 200
    assert connection.queries is not None


def test_an_answer_of_ten_megabytes_is_one_turn_and_harms_nothing(post, model, machine, doorbell):
    model.say_text(0, "x" * (10 << 20))
    model.say_text(1, "still no code")
    post(turns=2)
    advance(doorbell)
    play(doorbell, machine)
    trajectory = the_trajectory()
    states = list(trajectory.turns.values_list("extraction_state", flat=True))
    assert states[1:] == ["NO_CODE"] or trajectory.ending == "OUT_OF_CONTEXT", states
    assert states[0] in ("TOO_LARGE", "NO_CODE", "TRUNCATED")
    assert all(len(turn.answer) <= 4 << 20 for turn in trajectory.turns.all())
