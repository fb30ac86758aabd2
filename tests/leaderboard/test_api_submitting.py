"""POST /api/v1/submissions/: what goes in, and every bad input with its answer."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboard.models import ApiToken, Job, Submission
from leaderboard.services.tokens import token_create
from tests.leaderboard.bodies import HOST_SOURCE, h200_body, host_body, pointers, problem_of

URL = "/api/v1/submissions/"


def post(api, body, **headers):
    return api.post(URL, body, format="json", headers=headers)


def test_it_answers_201_with_everything_that_is_known(problems, alice_api):
    answer = post(alice_api, host_body(description="three loops"))
    assert answer.status_code == 201
    body = answer.json()
    assert answer["Location"] == body["url"]
    assert body["url"].endswith(f"{URL}{body['id']}/")
    assert body["html_url"].endswith(f"/submissions/{body['id']}/")
    assert (body["state"], body["verdict"], body["message"]) == ("QUEUED", None, "")
    assert (body["problem"], body["target"]) == ("gemm_n256_k256", "host")
    assert (body["language"], body["binding"]) == ("cpp", "c")
    assert (body["name"], body["description"]) == ("plain loops", "three loops")
    assert body["entrant"] == {"slug": "alice", "display_name": "alice", "kind": "person"}
    assert [(stage["stage"], stage["state"]) for stage in body["stages"]] == [
        ("policy", "waiting"),
        ("compilation", "waiting"),
        ("sass", "skipped"),
        ("sanitizer", "skipped"),
        ("correctness", "waiting"),
        ("counters", "skipped"),
        ("timing", "waiting"),
    ]
    assert body["queue"]["position"] == 1
    assert body["queue"]["workers_online"] == 0
    assert body["score"] is None
    assert body["candidate"]["sources"] == [{"path": "kernel.cpp", "content": HOST_SOURCE}]
    assert body["ignored_fields"] == []


def test_it_rings_the_build_queue_once_after_the_commit(
    problems, alice_api, doorbell, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        post(alice_api, host_body())
        assert doorbell.rings == []
    attempt = Job.objects.get().attempts.get()
    assert doorbell.rings == [("build", str(attempt.pk))]
    assert attempt.doorbell_count == 1


def test_a_broker_that_is_away_does_not_lose_the_submission(
    problems, alice_api, doorbell, django_capture_on_commit_callbacks
):
    doorbell.away = True
    with django_capture_on_commit_callbacks(execute=True):
        assert post(alice_api, host_body()).status_code == 201
    assert Job.objects.get().attempts.get().doorbell_at is None


def test_it_takes_several_files_and_an_entry_point(problems, alice_api):
    sources = [
        {"path": "src/./kernel.cu", "content": '#include "tile.cuh"\n'},
        {"path": "src/tile.cuh", "content": "// tile\n"},
    ]
    body = h200_body(sources=sources, entry_point="src/kernel.cu::run")
    del body["source"]
    made = post(alice_api, body).json()
    assert [source["path"] for source in made["candidate"]["sources"]] == [
        "src/kernel.cu",
        "src/tile.cuh",
    ]
    assert made["candidate"]["entry_file"] == "src/kernel.cu"


def test_an_unknown_field_is_accepted_and_named(problems, alice_api):
    answer = post(alice_api, host_body(license="MIT"))
    assert answer.status_code == 201
    assert answer.json()["ignored_fields"] == ["license"]


def test_the_bytes_stay_as_they_were_sent(problems, alice_api):
    """A BOM, CRLF, a spliced macro with a space: stored, hashed and compiled as they came."""
    source = (
        '\ufeff#define A 1 \\\r\n  + 2\r\n#define B \\ \n 3\nextern "C" int run(){return A;}\r\n'
    )
    made = post(alice_api, host_body(source=source)).json()
    row = Submission.objects.get(pk=made["id"])
    assert row.candidate.sources[0].content == source
    assert row.candidate.digest == row.candidate_digest == made["candidate"]["digest"]


def test_a_triton_kernel_is_one_python_file_with_the_plain_binding(problems, alice_api):
    body = h200_body(language="triton", source="def run(A, B, C): pass\n")
    del body["binding"]
    made = post(alice_api, body).json()
    assert (made["language"], made["binding"]) == ("triton", "c")
    kept = Submission.objects.get(pk=made["id"]).candidate
    assert (kept.entry_file, [source.path for source in kept.sources]) == (
        "kernel.py",
        ["kernel.py"],
    )


@pytest.mark.parametrize(
    ("change", "pointer", "part"),
    [
        ({"problem": "gemm_n256_k257"}, "problem", "did you mean 'gemm_n256_k256'"),
        ({"problem": None}, "problem", "required, but missing"),
        ({"problem": 7}, "problem", "'7' is not allowed"),
        ({"problem": "a\x00b"}, "problem", "is not allowed"),
        ({"target": "h300"}, "target", "'h300' is not allowed; allowed: h200, h100, b200, host"),
        ({"problem": "gemm_n7168_k5120"}, "target", "is not offered there; allowed: h200"),
        ({"language": "cuda"}, "language", "'cuda' is not allowed on host; allowed: cpp"),
        ({"language": "triton"}, "language", "'triton' is not allowed"),
        ({"binding": "tvm-ffi"}, "binding", "'tvm-ffi' is not allowed on host; allowed: c"),
        (
            {"target": "h200", "language": "triton", "binding": "tvm-ffi"},
            "binding",
            "'tvm-ffi' is not allowed on h200 for triton; allowed: c",
        ),
        ({"binding": "torch"}, "binding", "host code in Python is not run"),
        ({"source": ""}, "source", "the file is empty"),
        ({"source": None}, "source", "required"),
        ({"source": 12}, "source", "required: the file's text"),
        ({"source": "int a\x00;"}, "source", "NUL character at offset 5"),
        ({"source": "a\ud800"}, "source", "lone surrogate at offset 1"),
        ({"name": "n" * 101}, "name", "101 characters, at most 100"),
        ({"name": ["x"]}, "name", "expected text"),
        ({"description": "d" * 4001}, "description", "4001 characters, at most 4000"),
        ({"entry_symbol": "run now"}, "entry_symbol", "C identifier"),
        ({"entry_point": "kernel.cu"}, "entry_point", "expected 'file::symbol'"),
        ({"entry_point": "a::b::c"}, "entry_point", "exactly one '::'"),
        ({"sources": [{"path": "k.cpp", "content": "x"}]}, "source", "send one of them"),
    ],
)
def test_it_says_what_was_seen_and_what_is_allowed(problems, alice_api, change, pointer, part):
    answer = alice_api.generic(
        "POST", URL, json.dumps(host_body(**change)), content_type="application/json"
    )
    body = problem_of(answer, 400)
    assert pointer in pointers(body)
    assert any(part in error["message"] for error in body["errors"]), body["errors"]
    assert Submission.objects.count() == 0


def test_it_tells_all_errors_at_once(problems, alice_api):
    body = problem_of(post(alice_api, {"target": "h300", "name": "n" * 200}), 400)
    assert pointers(body) == ["problem", "target", "source", "name"]
    allowed = {error["pointer"]: error.get("allowed") for error in body["errors"]}
    assert allowed["target"] == ["h200", "h100", "b200", "host"]
    assert allowed["name"] == 100


@pytest.mark.parametrize(
    "path",
    [
        "/abs/k.cpp",
        "../k.cpp",
        "a/../../k.cpp",
        "..\\k.cpp",
        "C:\\k.cpp",
        "k.cpp/",
        "k\x00.cpp",
        "",
    ],
)
def test_a_path_that_leaves_the_folder_is_refused(problems, alice_api, path):
    body = host_body(sources=[{"path": path, "content": "int x;"}])
    del body["source"]
    told = problem_of(post(alice_api, body), 400)
    assert pointers(told) == ["sources[0].path"]


def test_two_paths_that_are_one_are_refused(problems, alice_api):
    files = [{"path": path, "content": "int x;"} for path in ("src/k.cpp", "src/./k.cpp")]
    body = host_body(sources=files)
    del body["source"]
    told = problem_of(post(alice_api, body), 400)
    assert "occurs twice after normalising" in told["errors"][0]["message"]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["k.cpp", "K.cpp"], "differ in case or Unicode form only"),
        (["caf\u00e9.cpp", "cafe\u0301.cpp"], "differ in case or Unicode form only"),
        (["k.cpp", "k.cpp/a.h"], "a name is a file and a folder at once"),
        (["a/k.cpp", "a"], "a name is a file and a folder at once"),
        (["."], "names the folder itself"),
        (["./."], "names the folder itself"),
    ],
)
def test_paths_that_cannot_lie_beside_each_other_are_refused(problems, alice_api, paths, said):
    files = [{"path": path, "content": "int x;"} for path in paths]
    told = problem_of(post(alice_api, host_body(source=None, sources=files)), 400)
    assert said in told["errors"][0]["message"]
    assert Submission.objects.count() == 0


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\x1b[31mb", "a\u2028b", "\u200b\u2060"])
def test_a_name_is_one_line_that_can_be_seen(problems, alice_api, name):
    told = problem_of(post(alice_api, host_body(name=name)), 400)
    assert pointers(told) == ["name"]


def test_fields_that_are_null_take_their_defaults(problems, alice_api):
    optional = ("language", "binding", "name", "description", "entry_file", "entry_symbol")
    answer = post(alice_api, host_body(**dict.fromkeys(optional)))
    assert answer.status_code == 201, answer.content
    assert answer.json()["candidate"]["entry_symbol"] == "run"


def test_the_entry_file_must_be_among_the_sources(problems, alice_api):
    told = problem_of(
        post(
            alice_api,
            {
                **host_body(source=None, entry_point="other.cpp::run"),
                "sources": [{"path": "k.cpp", "content": "int x;"}],
            },
        ),
        400,
    )
    assert told["errors"][0]["message"] == "entry file 'other.cpp' is not among the sources: k.cpp"


def test_several_files_need_to_say_which_is_compiled(problems, alice_api):
    files = [{"path": path, "content": "int x;"} for path in ("a.cpp", "b.cpp")]
    told = problem_of(post(alice_api, {**host_body(source=None), "sources": files}), 400)
    assert told["errors"][0]["allowed"] == ["a.cpp", "b.cpp"]


def test_a_utf16_file_gets_one_line(problems, alice_api):
    text = 'extern "C" int run(){return 1;}'.encode("utf-16-le").decode("latin-1")
    told = problem_of(post(alice_api, host_body(source=text)), 400)
    assert told["errors"][0]["message"].startswith("file is UTF-16 (NUL at offset 1)")


def test_a_body_in_utf16_is_no_json(problems, alice_api):
    data = json.dumps(host_body()).encode("utf-16")
    answer = alice_api.generic("POST", URL, data, content_type="application/json")
    assert problem_of(answer, 400)["detail"] == "not valid JSON: not UTF-8, offset 0"


def test_sources_above_one_mebibyte_are_413_with_both_numbers(problems, alice_api):
    told = problem_of(post(alice_api, host_body(source="x" * ((1 << 20) + 1))), 413)
    assert told["errors"][0]["seen"] == "1048577"
    assert told["errors"][0]["allowed"] == 1048576


def test_sources_of_exactly_one_mebibyte_are_taken(problems, alice_api):
    assert post(alice_api, host_body(source="x" * (1 << 20))).status_code == 201


def test_too_many_files_are_400_with_the_limit(problems, alice_api):
    files = [{"path": f"k{number}.cpp", "content": "x"} for number in range(5000)]
    told = problem_of(post(alice_api, {**host_body(source=None), "sources": files}), 400)
    assert told["errors"][0]["message"].startswith("5000 files, at most 64")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"problem": "gemm_a",\n"tolerance": NaN}', "not valid JSON: NaN at line 2"),
        ('{"problem": Infinity}', "not valid JSON: Infinity at line 1"),
        ('{"problem": 1, "problem": 2}', "key 'problem' occurs twice"),
        ("[1]", "the body must be a JSON object, not list"),
        ("", "not valid JSON: Expecting value at line 1"),
        ('{"problem": ', "not valid JSON: Expecting value at line 1"),
        ("[" * 100_000, "nested too deeply"),
        ('{"problem": ' + "1" * 5000 + "}", "not valid JSON"),
        ('{"problem": 1e999}', "beyond the range"),
    ],
)
def test_what_is_no_json_is_refused_before_anything_is_stored(problems, alice_api, text, detail):
    answer = alice_api.generic("POST", URL, text, content_type="application/json")
    assert detail in problem_of(answer, 400)["detail"]
    assert Submission.objects.count() == 0


def test_a_compressed_body_is_415(problems, alice_api):
    answer = alice_api.generic(
        "POST",
        URL,
        b"\x1f\x8b" + b"0" * 300,
        content_type="application/json",
        headers={"Content-Encoding": "gzip"},
    )
    assert "uncompressed" in problem_of(answer, 415)["detail"]


def test_another_content_type_is_415(problems, alice_api):
    answer = alice_api.post(URL, {"problem": "x"}, format="multipart")
    assert "send application/json" in problem_of(answer, 415)["detail"]


def test_a_body_above_the_limit_is_413(problems, alice_api):
    answer = post(alice_api, host_body(source=" " * (3 << 20)))
    assert "at most 2097152" in problem_of(answer, 413)["detail"]


def test_chunks_without_a_length_are_411_where_the_server_does_not_unpack_them(problems, alice_api):
    answer = alice_api.generic(
        "POST", URL, b"", content_type="application/json", headers={"Transfer-Encoding": "chunked"}
    )
    assert "send a Content-Length" in problem_of(answer, 411)["detail"]


def test_a_visitor_gets_401_and_the_scheme(problems, visitor_api):
    answer = post(visitor_api, host_body())
    assert "Authorization: Token" in problem_of(answer, 401)["detail"]
    assert answer["WWW-Authenticate"] == 'Token realm="ptxboard"'


@pytest.mark.parametrize("header", ["Token nonsense", "Bearer abc", "Token"])
def test_a_wrong_token_gets_401(problems, visitor_api, header):
    visitor_api.credentials(HTTP_AUTHORIZATION=header)
    problem_of(post(visitor_api, host_body()), 401)


@pytest.mark.parametrize("scheme", ["Token", "Worker"])
def test_a_worker_token_gets_403_that_says_so(problems, visitor_api, scheme):
    _, secret = token_create(worker_name="lab-1", lanes=["build"])
    visitor_api.credentials(HTTP_AUTHORIZATION=f"{scheme} {secret}")
    assert "worker token" in problem_of(post(visitor_api, host_body()), 403)["detail"]


def test_a_submit_token_opens_no_worker_address(problems, alice_api):
    answer = alice_api.post("/api/v1/worker/claim", {}, format="json")
    assert "scope worker" in problem_of(answer, 403)["detail"]


@pytest.mark.parametrize("field", ["expires_at", "revoked_at"])
def test_an_expired_or_revoked_token_says_when(problems, alice_api, field):
    ApiToken.objects.update(**{field: timezone.now() - timedelta(days=1)})
    detail = problem_of(post(alice_api, host_body()), 401)["detail"]
    assert ("expired on" if field == "expires_at" else "was revoked on") in detail


def test_a_token_of_a_closed_account_is_refused(problems, alice, alice_api):
    alice.is_active = False
    alice.save()
    assert "closed" in problem_of(post(alice_api, host_body()), 401)["detail"]


def test_the_database_keeps_no_secret(problems, alice):
    token, secret = token_create(user=alice)
    assert secret not in str(ApiToken.objects.filter(pk=token.pk).values().get())


def test_a_wrong_method_is_405_with_what_is_allowed(problems, alice_api):
    answer = alice_api.put(URL, {}, format="json")
    problem_of(answer, 405)
    assert answer["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_an_unknown_address_is_a_problem_too(db, visitor_api):
    assert "/api/v1/ lists" in problem_of(visitor_api.get("/api/v1/nope/"), 404)["detail"]
    problem_of(visitor_api.get(f"{URL}8b1f6dc2-91f5-4e0b-8f0e-0c36a30a3e11/"), 404)


def test_an_error_of_ours_is_a_problem_too(problems, alice_api, monkeypatch):
    def fail(**_):
        raise RuntimeError("disk")

    monkeypatch.setattr("leaderboard.api.submissions.submission_create", fail)
    body = problem_of(post(alice_api, host_body()), 500)
    assert "disk" not in json.dumps(body)


def test_the_address_works_without_its_slash(problems, alice_api):
    answer = alice_api.post("/api/v1/submissions", host_body(), format="json")
    assert answer.status_code == 201


def test_the_limit_of_submissions_in_flight_is_429_and_passes(problems, alice_api, settings):
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 2
    first = post(alice_api, host_body(source="int a;")).json()
    post(alice_api, host_body(source="int b;"))
    answer = post(alice_api, host_body(source="int c;"))
    assert (
        "2 of your submissions are queued or running, at most 2"
        in (problem_of(answer, 429)["detail"])
    )
    assert answer["Retry-After"] == "30"
    assert alice_api.post(f"{URL}{first['id']}/cancel/").status_code == 200
    assert post(alice_api, host_body(source="int c;")).status_code == 201
