"""The worker API: claim, heartbeat, stage, artifact, complete; and everything that goes wrong."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from evaluator.records.evaluation import JobOrder
from evaluator.records.evidence import Artifact as ArtifactRecord
from evaluator.records.verdicts import Verdict
from evaluator.targets import TARGETS
from leaderboard.models import (
    Artifact,
    Attempt,
    AuditEntry,
    Evaluation,
    Job,
    StageRecord,
    Submission,
    Worker,
)
from leaderboard.services.entrants import entrant_of
from leaderboard.services.tokens import token_create
from tests.leaderboard import factories
from tests.leaderboard.bodies import content_of, h200_body, host_body, pointers, problem_of
from tests.leaderboard.machine import Machine

URL = "/api/v1/submissions/"


def submit(api, **more):
    body = h200_body(**more) if more.get("target") == "h200" else host_body(**more)
    answer = api.post(URL, body, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()["id"]


def read(api, identifier):
    return api.get(f"{URL}{identifier}/").json()


def test_a_kernel_for_host_goes_all_the_way_to_the_board(alice_api, machine):
    identifier = submit(alice_api)
    build = machine.order()
    assert read(alice_api, identifier)["state"] == "RUNNING"
    order = JobOrder.model_validate(build)
    assert (order.lane, order.number, order.lease_seconds) == ("build", 1, 60)
    assert order.candidate.sources[0].path == "kernel.cpp"
    assert order.problem.name == "gemm_n256_k256"
    machine.run(build)
    assert read(alice_api, identifier)["state"] == "QUEUED"
    gpu = machine.order()
    assert gpu["lane"] == "gpu"
    assert [stage["stage"] for stage in gpu["stages"]] == ["policy", "compilation"]
    machine.run(gpu, speedup=1.25)
    done = read(alice_api, identifier)
    assert (done["state"], done["verdict"], done["queue"]) == ("DONE", "PASSED", None)
    assert done["score"]["speedup"] == 1.25
    assert done["environment"]["sandbox"] == "bubblewrap 0.11.0"
    assert done["target_instructions"] is None
    assert [stage["state"] for stage in done["stages"]] == (
        ["passed", "passed", "skipped", "skipped", "passed", "skipped", "passed"]
    )
    board = alice_api.get("/api/v1/boards/host/gemm_n256_k256/").json()
    assert [row["id"] for row in board["rows"]] == [identifier]


def test_an_h200_kernel_keeps_its_build_verdict_while_no_gpu_is_there(alice_api, machine):
    identifier = submit(alice_api, target="h200")
    machine.targets = ("host",)
    machine.lanes = ("build",)
    assert machine.claim().status_code == 204
    machine.targets = ("host", "h200")
    machine.run(machine.order())
    seen = read(alice_api, identifier)
    assert (seen["state"], seen["verdict"]) == ("QUEUED", None)
    assert [stage["verdict"] for stage in seen["stages"][:3]] == ["PASSED"] * 3
    assert seen["queue"]["workers_online"] == 0
    assert seen["queue"]["note"] == "no H200 worker is online; the kernel is built and waits"
    assert seen["target_instructions"]["status"] == "unknown"
    assert seen["environment"] is not None


def test_a_compile_error_is_a_verdict_and_ends_the_job(alice_api, machine):
    identifier = submit(alice_api)
    machine.fail(machine.order(), "compilation", "COMPILE_ERROR", "kernel.cpp:1: expected ';'")
    done = read(alice_api, identifier)
    assert (done["state"], done["verdict"]) == ("DONE", "COMPILE_ERROR")
    assert done["message"] == "kernel.cpp:1: expected ';'"
    assert done["score"] is None
    assert [stage["state"] for stage in done["stages"]] == (
        ["passed", "failed", "skipped", "skipped", "not_reached", "skipped", "not_reached"]
    )
    assert machine.claim().status_code == 204


def test_noise_is_an_evaluation_without_score_that_its_author_may_repeat(
    alice_api, bob_api, machine
):
    identifier = submit(alice_api)
    machine.run(machine.order())
    machine.fail(machine.order(), "timing", "INCONCLUSIVE", "noise 48.0%, limit 35.0%")
    done = read(alice_api, identifier)
    assert (done["verdict"], done["score"]) == ("INCONCLUSIVE", None)
    assert alice_api.get("/api/v1/boards/host/gemm_n256_k256/").json()["rows"] == []
    problem_of(bob_api.post(f"{URL}{identifier}/rerun/"), 403)
    assert alice_api.post(f"{URL}{identifier}/rerun/").status_code == 202
    machine.evaluate()
    assert read(alice_api, identifier)["verdict"] == "PASSED"
    assert Evaluation.objects.count() == 2
    assert Evaluation.objects.filter(valid=True).get().job.number == 2


def test_a_verdict_stands_for_its_author_but_staff_may_repeat(alice_api, carol_api, machine):
    identifier = submit(alice_api)
    machine.evaluate(speedup=1.2)
    told = problem_of(alice_api.post(f"{URL}{identifier}/rerun/"), 403)
    assert "the verdict is PASSED, which stands" in told["detail"]
    assert carol_api.post(f"{URL}{identifier}/rerun/").status_code == 202
    problem_of(carol_api.post(f"{URL}{identifier}/rerun/"), 409)
    machine.run(machine.order())
    machine.fail(machine.order(), "timing", "INCONCLUSIVE", "noise")
    assert read(alice_api, identifier)["verdict"] == "PASSED"
    assert read(alice_api, identifier)["score"]["speedup"] == 1.2


def test_the_newest_verdict_counts_and_the_old_one_stays(alice_api, carol_api, machine):
    identifier = submit(alice_api)
    machine.evaluate(speedup=1.2)
    carol_api.post(f"{URL}{identifier}/rerun/")
    machine.evaluate(speedup=1.1)
    assert read(alice_api, identifier)["score"]["speedup"] == 1.1
    rows = Evaluation.objects.order_by("job__number")
    assert [(row.speedup, row.valid) for row in rows] == [(1.2, False), (1.1, True)]


def test_the_second_delivery_of_a_message_is_dropped(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    told = problem_of(machine.claim(order["attempt"]), 409)
    assert "is RUNNING by lab-1, not QUEUED" in told["detail"]
    machine.run(order)
    problem_of(machine.claim(order["attempt"]), 409)
    assert Attempt.objects.filter(lane="build").count() == 1


def test_an_attempt_that_does_not_exist_is_404(machine):
    for identifier in ("8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11", "nonsense"):
        problem_of(machine.claim(identifier), 404)


def test_a_worker_gets_only_what_it_can_run(alice_api, machine):
    submit(alice_api, target="h200")
    attempt = str(Attempt.objects.get().pk)
    machine.targets = ("host",)
    assert (
        "needs lane 'build' and target 'h200'"
        in (problem_of(machine.claim(attempt), 409)["detail"])
    )
    assert machine.claim().status_code == 204


def test_an_unfit_worker_gets_nothing(alice_api, machine):
    submit(alice_api)
    body = {"worker": machine.hello(state="unfit", note="15 % slower than its history")}
    assert machine.post("claim", body).status_code == 204
    assert Worker.objects.get().state == "unfit"


def test_the_oldest_waits_least(alice_api, machine):
    first = submit(alice_api, source="int a;")
    submit(alice_api, source="int b;")
    assert Job.objects.get(pk=machine.order()["job"]).submission_id.hex == first.replace("-", "")


def test_a_repeated_stage_changes_nothing(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    result = machine.results(order)[0]
    first, again = machine.stage(order, result), machine.stage(order, result)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert StageRecord.objects.count() == 1


def test_another_result_for_a_recorded_stage_is_409(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    result = machine.results(order)[0]
    machine.stage(order, result)
    changed = result.model_copy(update={"message": "something else"})
    assert "never overwritten" in problem_of(machine.stage(order, changed), 409)["detail"]


def test_an_unknown_stage_is_400_with_the_known_ones(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    value = {"stage": "linting", "verdict": "PASSED", "message": ""}
    told = problem_of(machine.stage(order, value), 400)
    assert told["errors"][0]["seen"] == "linting"
    assert told["errors"][0]["allowed"] == ["policy", "compilation"]


def test_a_stage_of_the_other_lane_is_400(alice_api, machine):
    submit(alice_api)
    value = {"stage": "timing", "verdict": "PASSED", "message": ""}
    problem_of(machine.stage(machine.order(), value), 400)


def test_stages_come_in_order_and_end_with_the_first_failure(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    policy, compilation = machine.results(order)
    assert "next is" in problem_of(machine.stage(order, compilation), 400)["detail"]
    machine.stage(order, policy.model_copy(update={"verdict": Verdict.BANNED_LIBRARY}))
    assert "nothing follows" in problem_of(machine.stage(order, compilation), 400)["detail"]


def test_evidence_that_does_not_fit_is_named_by_its_field(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    value = machine.results(order)[0].model_dump(mode="json")
    value["evidence"]["header_count"] = "many"
    told = problem_of(machine.stage(order, value), 400)
    assert pointers(told) == ["result.evidence.header_count"]


@pytest.mark.parametrize("call", ["heartbeat", "stage", "complete", "put"])
def test_a_stale_fence_is_409_everywhere(alice_api, machine, call):
    submit(alice_api)
    order = machine.order()
    stale = {**order, "fence": "8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11"}
    answer = {
        "heartbeat": lambda: machine.heartbeat(stale),
        "stage": lambda: machine.stage(stale, machine.results(order)[0]),
        "complete": lambda: machine.complete(stale),
        "put": lambda: machine.put(stale, b"log"),
    }[call]()
    problem_of(answer, 409)
    assert StageRecord.objects.count() == 0
    assert Attempt.objects.get().state == "RUNNING"


def test_a_fence_that_is_no_uuid_is_409_too(alice_api, machine):
    submit(alice_api)
    problem_of(machine.heartbeat({**machine.order(), "fence": "x\x00"}), 409)


def test_a_heartbeat_lengthens_the_lease(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    Attempt.objects.update(lease_until=timezone.now() + timedelta(seconds=1))
    answer = machine.heartbeat(order)
    assert answer.json() == {"cancel": False, "lease_seconds": 60}
    assert Attempt.objects.get().lease_until > timezone.now() + timedelta(seconds=50)


def test_the_stage_that_runs_is_shown(alice_api, machine):
    identifier = submit(alice_api)

    def running():
        stages = read(alice_api, identifier)["stages"]
        return [stage["stage"] for stage in stages if stage["state"] == "running"]

    assert running() == []
    order = machine.order()
    assert running() == ["policy"]
    machine.stage(order, machine.results(order)[0])
    assert running() == ["compilation"]


def test_a_repeated_completion_changes_nothing(alice_api, machine):
    submit(alice_api)
    machine.run(machine.order())
    gpu = machine.order()
    first = machine.run(gpu)
    again = machine.complete(gpu)
    assert (again.status_code, again.json()) == (200, first.json())
    assert Evaluation.objects.count() == 1
    assert machine.complete(gpu, "faulted").json()["state"] == "FINISHED"
    assert Submission.objects.get().verdict == "PASSED"


@pytest.mark.usefixtures("no_delay")
def test_a_completion_without_its_stages_is_our_fault(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    machine.stage(order, machine.results(order)[0])
    assert machine.complete(order).json()["state"] == "FAULTED"
    assert "without the stages compilation" in Attempt.objects.order_by("number")[0].message
    assert machine.order()["number"] == 2


@pytest.mark.usefixtures("no_delay")
def test_three_faults_of_ours_end_in_words_and_cost_nothing(alice_api, machine, settings):
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 1
    identifier = submit(alice_api)
    for number in (1, 2, 3):
        order = machine.order()
        assert order["number"] == number
        machine.complete(order, "faulted", "the GPU fell off the bus\nTraceback ...")
    done = read(alice_api, identifier)
    assert (done["state"], done["verdict"]) == ("FAULTED", None)
    assert done["message"].startswith(
        "INFRA_ERROR: our build worker failed 3 times (the GPU fell off the bus)."
    )
    assert "counts against no quota" in done["message"]
    assert machine.claim().status_code == 204
    assert Evaluation.objects.count() == 0
    submit(alice_api, source="int next;")
    Submission.objects.exclude(pk=identifier).update(state="CANCELLED")
    assert alice_api.post(f"{URL}{identifier}/rerun/").status_code == 202


def test_work_handed_back_costs_no_attempt(alice_api, machine):
    submit(alice_api)
    for _ in range(5):
        machine.complete(machine.order(), "released", "the worker is shutting down")
    order = machine.order()
    assert order["number"] == 6
    machine.run(order)
    assert Job.objects.get().state == "QUEUED"


@pytest.mark.usefixtures("no_delay")
def test_work_that_is_only_ever_handed_back_ends(alice_api, machine):
    identifier = submit(alice_api)
    for _ in range(40):
        if machine.claim().status_code == 204:
            break
        order = Attempt.objects.get(state="RUNNING")
        machine.complete(
            {
                "attempt": str(order.pk),
                "fence": str(order.fence),
                "candidate": {"target": "host"},
            },
            "released",
        )
    assert read(alice_api, identifier)["state"] == "FAULTED"


def test_a_cancel_reaches_the_worker_by_heartbeat(alice_api, bob_api, machine):
    identifier = submit(alice_api)
    order = machine.order()
    problem_of(bob_api.post(f"{URL}{identifier}/cancel/"), 403)
    assert alice_api.post(f"{URL}{identifier}/cancel/").json()["state"] == "CANCELLED"
    assert machine.heartbeat(order).json()["cancel"] is True
    problem_of(machine.stage(order, machine.results(order)[0]), 409)
    assert machine.complete(order, "released").json()["state"] == "CANCELLED"
    assert alice_api.post(f"{URL}{identifier}/cancel/").json()["state"] == "CANCELLED"
    assert AuditEntry.objects.filter(action="submission.cancelled").count() == 1
    assert machine.claim().status_code == 204


def test_a_cancel_after_the_verdict_changes_nothing(alice_api, machine):
    identifier = submit(alice_api)
    machine.evaluate()
    problem_of(alice_api.post(f"{URL}{identifier}/cancel/"), 409)
    assert read(alice_api, identifier)["verdict"] == "PASSED"


def test_an_artifact_is_stored_once_under_its_digest(alice_api, machine, visitor_api):
    submit(alice_api)
    order = machine.order()
    assert machine.put(order, b"</pre><script>alert(3)</script>\n").status_code == 201
    again = machine.put(order, b"</pre><script>alert(3)</script>\n")
    assert (again.status_code, again.json()["byte_count"]) == (200, 32)
    row = Artifact.objects.get()
    assert row.path.read_bytes() == b"</pre><script>alert(3)</script>\n"
    answer = visitor_api.get(f"/api/v1/artifacts/{row.sha256}/")
    assert content_of(answer) == b"</pre><script>alert(3)</script>\n"
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"] == f'attachment; filename="{row.sha256[:16]}.txt"'


@pytest.mark.parametrize("data", [b"\x7fELF\x00\x01", b"caf\xe9", "cafés"[:4].encode()[:-1]])
def test_what_is_no_text_is_served_as_bytes(alice_api, machine, visitor_api, data):
    submit(alice_api)
    machine.put(machine.order(), data)
    answer = visitor_api.get(f"/api/v1/artifacts/{hashlib.sha256(data).hexdigest()}/")
    assert content_of(answer) == data
    assert answer["Content-Type"] == "application/octet-stream"


def test_a_wrong_digest_is_422_and_nothing_stays(alice_api, machine, private_var):
    submit(alice_api)
    order = machine.order()
    told = problem_of(machine.put(order, b"log", sha256="0" * 64), 422)
    assert hashlib.sha256(b"log").hexdigest() in told["detail"]
    assert Artifact.objects.count() == 0
    assert [path for path in private_var.rglob("*") if path.is_file()] == []


def test_an_artifact_above_the_limit_is_413(alice_api, machine, settings, private_var):
    settings.PTXBOARD_MAX_ARTIFACT_BYTES = 1000
    submit(alice_api)
    problem_of(machine.put(machine.order(), b"x" * 1001), 413)
    assert [path for path in private_var.rglob("*") if path.is_file()] == []


def test_an_artifact_needs_a_running_attempt(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    machine.complete(order, "released")
    problem_of(machine.put(order, b"log"), 409)


def test_a_stage_waits_for_its_artifacts(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    data = b"a library"
    wanted = ArtifactRecord(role="library", sha256=hashlib.sha256(data).hexdigest(), byte_count=9)
    policy, compilation = machine.results(order)
    machine.stage(order, policy)
    built = compilation.model_copy(update={"artifacts": (wanted, wanted)})
    assert "library" in problem_of(machine.stage(order, built), 422)["detail"]
    machine.put(order, data)
    assert machine.stage(order, built).status_code == 200
    machine.complete(order)
    gpu = machine.order()
    assert [artifact["sha256"] for artifact in gpu["build_artifacts"]] == [wanted.sha256] * 2
    answer = machine.client.get(f"/api/v1/worker/artifacts/{wanted.sha256}")
    assert content_of(answer) == data


def test_output_with_nul_and_script_is_kept_as_text(alice_api, machine):
    identifier = submit(alice_api, name="<img src=x onerror=alert(1)>")
    machine.fail(machine.order(), "compilation", "COMPILE_ERROR", 'identifier "\x00</script>"')
    done = read(alice_api, identifier)
    assert done["message"] == 'identifier "\ufffd</script>"'
    assert done["name"] == "<img src=x onerror=alert(1)>"
    record = StageRecord.objects.get(stage="compilation")
    assert record.result.message == 'identifier "\x00</script>"'


def test_the_chain_starts_at_the_candidate_and_holds_over_both_lanes(alice_api, machine):
    identifier = submit(alice_api)
    machine.evaluate()
    records = list(StageRecord.objects.order_by("id"))
    assert [record.stage for record in records] == [
        "policy",
        "compilation",
        "correctness",
        "timing",
    ]
    previous = Submission.objects.get().candidate_digest
    for record in records:
        assert record.previous_digest == previous
        assert record.digest == record.computed_digest
        previous = record.digest
    assert Evaluation.objects.get().chain_digest == previous
    shown = [s["digest"] for s in read(alice_api, identifier)["stages"] if s["digest"]]
    assert shown == [record.digest for record in records]


@pytest.mark.usefixtures("no_delay")
def test_a_retry_starts_its_chain_where_the_lost_attempt_did(alice_api, machine):
    submit(alice_api)
    order = machine.order()
    machine.stage(order, machine.results(order)[0])
    machine.complete(order, "faulted", "lost")
    machine.run(machine.order())
    first, again = StageRecord.objects.filter(stage="policy").order_by("id")
    assert (
        first.previous_digest
        == again.previous_digest
        == (Submission.objects.get().candidate_digest)
    )


def test_a_changed_record_no_longer_matches_its_digest(alice_api, machine):
    submit(alice_api)
    machine.evaluate()
    record = StageRecord.objects.get(stage="timing")
    record.result_json = record.result_json.replace("PASSED", "TIMEOUT", 1)
    assert record.computed_digest != record.digest


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("hello", {"name": "", "lanes": ["build"], "targets": []}, "name"),
        ("hello", {"name": "x", "lanes": ["gpus"], "targets": []}, "lanes[0]"),
        ("claim", {}, "worker"),
    ],
)
def test_a_body_that_does_not_fit_is_named_by_its_field(machine, path, body, pointer):
    assert pointer in pointers(problem_of(machine.post(path, body), 400))


def test_a_worker_is_listed_with_what_it_holds(alice_api, machine, visitor_api):
    submit(alice_api)
    machine.post("hello", machine.hello(environment=None, note="rack 4"))
    order = machine.order()
    (seen,) = visitor_api.get("/api/v1/workers/").json()
    assert (seen["name"], seen["state"]) == ("lab-1", "busy")
    assert seen["attempts"] == [order["attempt"]]
    Worker.objects.update(last_seen=timezone.now() - timedelta(minutes=2))
    assert visitor_api.get("/api/v1/workers/").json()[0]["state"] == "offline"


def test_a_hello_rings_again_for_work_whose_message_was_lost(alice_api, machine, doorbell):
    submit(alice_api)
    machine.post("hello", machine.hello())
    assert [queue for queue, _ in doorbell.rings] == ["build"]
    machine.post("hello", machine.hello())
    assert len(doorbell.rings) == 1


@pytest.mark.django_db(transaction=True)
def test_of_eight_claims_at_once_one_wins():
    factories.problems()
    user = factories.user()
    one = factories.submission(
        by=entrant_of(user=user), problem=factories.Problem.objects.get(name="gemm_n256_k256")
    )
    attempt = str(factories.queued(one).pk)
    _, secret = token_create(worker_name="lab", lanes=["build"], targets=list(TARGETS))

    def claim(number):
        try:
            return Machine(name=f"lab-{number}", secret=secret).claim(attempt)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(claim, range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    fences = [answer.json()["fence"] for answer in answers if answer.status_code == 200]
    assert fences == [str(Attempt.objects.get().fence)]
