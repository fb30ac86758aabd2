import json
import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from evaluator.records.evidence import Ending, SanitizerFault
from evaluator.records.verdicts import Stage, Verdict
from leaderboard.models import Attempt, Entrant, Job, Problem, StageRecord, Submission
from leaderboard.services.evaluations import evaluation_correct
from tests.leaderboard import factories
from tests.leaderboard.reading import Page


@pytest.fixture
def gemm(problems: dict[str, Problem]) -> Problem:
    return problems["gemm_n7168_k5120"]


@pytest.fixture
def one(gemm: Problem, alice_entrant: Entrant) -> Submission:
    return factories.submission(by=alice_entrant, problem=gemm, name="wgmma")


def page_of(client: Client, submission: Submission) -> Page:
    return Page(client.get(submission.get_absolute_url()))


def test_it_shows_every_stage_and_the_score_of_a_passed_kernel(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.94))
    page = page_of(client, one)
    assert page.title == "wgmma · PTXBoard"
    assert "Speedup 0.940×" in page.text  # noqa: RUF001
    for stage in Stage:
        assert f"stage-{stage.value}" in page.attributes("id")
    assert "6 Counters Passed executed, tier mma, work share 1.000 9.200 s" in page.text
    assert f"/boards/h200/gemm_n7168_k5120/#row-{one.id}" in page.links()
    assert "hx-get" not in page.html


def test_it_shows_resources_samples_clocks_and_the_judges_batches(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.94))
    text = page_of(client, one).text
    assert "gemm_wgmma<128, 256, 64> 168 0 0 0 1 024".replace(" ", "") in text.replace(
        " ", ""
    ).replace("\u202f", "")
    assert "the reported span plus 5 % and 5.000 µs a call" in text
    assert "All 300 samples as a table" in text
    assert "Temperature 52 to 54 °C" in text
    assert "SM clock 1950 MHz to 1980 MHz" in text
    assert "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24" in text


def test_it_strips_terminal_codes_from_the_compiler_log(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record))
    page = page_of(client, one)
    assert "Compiling entry function 'gemm_wgmma' for 'sm_90a'" in page.text
    assert "\x1b" not in page.html


def test_it_names_the_first_fault_of_the_sanitizer_and_what_to_do(client, one, gemm):
    fault = SanitizerFault(
        kind="Invalid __global__ write of size 2 bytes",
        kernel="gemm",
        source_file="kernel.cu",
        source_line=12,
    )
    results = factories.failing(
        factories.stages(gemm.record),
        Stage.SANITIZER,
        Verdict.SANITIZER_ERROR,
        "memcheck: 64 errors",
        error_count=64,
        first_fault=fault,
    )
    factories.evaluated(one, results)
    text = page_of(client, one).text
    assert "First fault Invalid __global__ write of size 2 bytes In kernel gemm" in text
    assert "At kernel.cu:12" in text
    assert "Next: The first fault names kernel, file and line; run memcheck on it." in text
    assert "5 Correctness Not reached" in text
    assert "Speedup" not in text


def test_it_quotes_a_killed_process_and_says_how_it_ended(client, one, gemm):
    process = factories.process(
        Ending.TIMED_OUT, exit_code=None, signal=9, output_tail="waiting for mbarrier"
    )
    results = factories.failing(
        factories.stages(gemm.record),
        Stage.CORRECTNESS,
        Verdict.TIMEOUT,
        "no answer within 30 s",
        trials=(),
        process=process,
    )
    factories.evaluated(one, results)
    text = page_of(client, one).text
    assert "Ended timed_out, signal 9, after 1.840 s waiting for mbarrier" in text


def test_it_tells_the_place_in_the_queue_and_who_could_build(client, one):
    factories.queued(one)
    assert "Number 1 in the queue, but no build worker is online" in page_of(client, one).text
    now = timezone.now()
    factories.worker("build-1", ["build"], ["h200"], last_seen=now)
    page = page_of(client, one)
    assert "Number 1 in the queue; 1 worker can run this." in page.text
    assert f"/submissions/{one.id}/progress/?seen=0" in page.attributes("hx-get")
    assert "every 2s" in page.attributes("hx-trigger")
    assert "This page reloads every five seconds." in page.text


def test_it_says_that_no_h200_worker_is_online_and_shows_the_build(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record)[:3])
    factories.queued(one, lane="gpu")
    text = page_of(client, one).text
    assert "but no H200 worker is online; the kernel is built and waits." in text
    assert "3 SASS Passed" in text
    assert "4 Sanitizer Queued" in text


def test_it_shows_the_running_stage_until_the_end(client, one, gemm):
    results = factories.stages(gemm.record)
    factories.evaluated(one, results[:4])
    Submission.objects.filter(pk=one.pk).update(state="RUNNING")
    Attempt.objects.filter(lane="gpu").update(
        state="RUNNING",
        current_stage="correctness",
        fence=uuid.uuid4(),
        lease_until=timezone.now() + timedelta(minutes=1),
    )
    address = f"/submissions/{one.id}/progress/"
    page = Page(client.get(address))
    assert page.status == 200
    assert "Running Correctness is running on h200-a." in page.text
    assert "5 Correctness Running" in page.text
    Attempt.objects.filter(lane="gpu").update(state="CANCELLED")
    Job.objects.update(state="CANCELLED")
    Submission.objects.filter(pk=one.pk).update(state="CANCELLED")
    ended = client.get(address)
    assert ended.status_code == 286
    assert "hx-get" not in ended.content.decode()
    assert "It has ended. Show its evidence." in Page(ended).text


def test_it_takes_the_blame_for_infrastructure_and_lists_the_attempts(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record)[:3])
    for _ in range(3):
        factories.queued(one, lane="gpu", state="EXPIRED", message="no heartbeat for 60 s")
    Job.objects.update(state="FAULTED", message="three leases ended")
    Submission.objects.filter(pk=one.pk).update(state="FAULTED", message="three leases ended")
    text = page_of(client, one).text
    assert "Infrastructure error" in text
    assert "Not your fault, not counted" in text
    assert text.count("no heartbeat for 60 s") == 3
    assert text.count("expired (ours)") == 3
    assert "4 Sanitizer Not measured" in text


def test_it_offers_the_evidence_of_stages_that_ended_meanwhile(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record)[:3])
    factories.queued(one, lane="gpu")
    address = f"/submissions/{one.id}/progress/"
    assert "more stage" not in Page(client.get(f"{address}?seen=3")).text
    page = Page(client.get(f"{address}?seen=1"))
    assert "Show the evidence of 2 more stages" in page.text
    assert f"{address}?seen=1" in page.attributes("hx-get")
    assert client.get(f"{address}?seen=-1x").status_code == 200


def test_it_shows_a_record_of_an_older_format_without_its_evidence(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record))
    record = StageRecord.objects.get(stage="sass")
    value = json.loads(record.result_json)
    value["evidence"] = {"instructions_found": 3}
    StageRecord.objects.filter(pk=record.pk).update(result_json=json.dumps(value))
    page = page_of(client, one)
    assert page.status == 200
    assert "This record has an older format" in page.text


def test_it_asks_the_same_number_of_queries_whatever_the_evidence(
    client, one, gemm, django_assert_num_queries
):
    factories.evaluated(one, factories.stages(gemm.record))
    with django_assert_num_queries(9):
        client.get(one.get_absolute_url())


def test_it_says_who_withdrew_an_evaluation_and_why(client, one, gemm, carol: User):
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.94))
    evaluation_correct(
        evaluation=one.evaluations.get(), valid=False, reason="wrong driver", user=carol
    )
    text = page_of(client, one).text
    assert "Withdrawn" in text
    assert "This evaluation was withdrawn and does not rank" in text
    assert "withdrawn by carol. wrong driver" in text
    assert "See its place" not in text


def test_lists_say_withdrawn_where_the_evaluation_was_taken_back(
    client, one, gemm, carol: User, visitor_api
):
    factories.evaluated(one, factories.stages(gemm.record, speedup=0.94))
    evaluation = one.evaluations.get()
    assert "Passed wgmma" in Page(client.get("/submissions/")).text
    evaluation_correct(evaluation=evaluation, valid=False, reason="wrong driver", user=carol)
    for address in ("/submissions/", "/"):
        text = Page(client.get(address)).text
        assert "Withdrawn wgmma" in text
        assert "Passed wgmma" not in text
        assert "0.940×" not in text  # noqa: RUF001
    (row,) = visitor_api.get("/api/v1/submissions/").json()["results"]
    assert (row["verdict"], row["withdrawn"]) == ("PASSED", True)
    assert visitor_api.get(f"/api/v1/submissions/{one.pk}/").json()["withdrawn"] is True
    evaluation_correct(evaluation=evaluation, valid=True, reason="it was not", user=carol)
    assert "Passed wgmma" in Page(client.get("/submissions/")).text
    assert visitor_api.get(f"/api/v1/submissions/{one.pk}/").json()["withdrawn"] is False


def test_it_says_why_a_work_share_is_unknown(client, one, gemm):
    factories.evaluated(one, factories.stages(gemm.record, work_share=None))
    page = page_of(client, one)
    assert "no target instruction in the binary" in page.text
    assert "no target instruction in the binary" in page.attributes("title")


def test_it_numbers_the_source_and_offers_it_as_plain_text(client, one):
    page = page_of(client, one)
    assert "s1-L5" in page.attributes("id")
    response = client.get(f"/submissions/{one.id}/sources/1/")
    assert response.content.decode() == one.candidate.sources[0].content
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"] == f'attachment; filename="{one.id}_1.cu.txt"'
    missing = client.get(f"/submissions/{one.id}/sources/2/")
    assert "There is no source 2; this submission has 1." in Page(missing).text


def test_it_lets_the_owner_cancel_and_nobody_else(client, one, alice: User, bob: User):
    factories.queued(one)
    client.force_login(bob)
    assert f"/submissions/{one.id}/cancel/" not in page_of(client, one).attributes("action")
    answer = client.post(f"/submissions/{one.id}/cancel/", follow=True)
    assert "only alice or staff can cancel this submission" in Page(answer).text
    client.force_login(alice)
    assert f"/submissions/{one.id}/cancel/" in page_of(client, one).attributes("action")
    answer = client.post(f"/submissions/{one.id}/cancel/", follow=True)
    assert "Cancelled by alice." in Page(answer).text


def test_it_lists_the_newest_first_and_walks_to_the_oldest_once(client, gemm, alice_entrant):
    for number in range(53):
        factories.submission(
            by=alice_entrant,
            problem=gemm,
            name=f"kernel {number:02}",
            created_at=factories.NOW + timedelta(minutes=number // 4),
        )
    first = Page(client.get("/submissions/"))
    older = next(link for link in first.links() if "before=" in link)
    second = Page(client.get(f"/submissions/{older}"))
    seen = [
        name
        for page in (first, second)
        for name in [f"kernel {number:02}" for number in range(53)]
        if name in page.text
    ]
    assert sorted(seen) == [f"kernel {number:02}" for number in range(53)]
    assert not any("before=" in link for link in second.links())


def test_it_filters_by_state_and_target_and_names_the_words_it_takes(client, one):
    assert "wgmma" in Page(client.get("/submissions/?state=QUEUED&target=h200")).text
    assert "Nothing matches." in Page(client.get("/submissions/?target=b200")).text
    wrong = Page(client.get("/submissions/?state=DREAMING"))
    assert wrong.status == 404
    assert (
        "There is no state 'DREAMING'. Choose one of: QUEUED, RUNNING, DONE, FAULTED, CANCELLED."
        in wrong.text
    )


def test_it_lists_only_ones_own(client, one, gemm, bob: User):
    assert client.get("/submissions/mine/").status_code == 302
    client.force_login(bob)
    assert "You have not submitted a kernel yet." in Page(client.get("/submissions/mine/")).text


def test_it_asks_one_query_for_the_list(client, one, django_assert_num_queries):
    with django_assert_num_queries(1):
        client.get("/submissions/")


def test_it_says_that_there_is_no_such_submission(client, db):
    page = Page(client.get("/submissions/00000000-0000-4000-8000-000000000000/"))
    assert page.status == 404
    assert "There is no submission 00000000-0000-4000-8000-000000000000." in page.text
