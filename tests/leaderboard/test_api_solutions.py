"""A FlashInfer-Trace solution as it is, or with one thing wrong."""

import copy
import json

import pytest

from tests.leaderboard.bodies import pointers, problem_of

URL = "/api/v1/submissions/"
SOLUTION = {
    "name": "tiles",
    "definition": "gemm_n7168_k5120",
    "author": "alice",
    "spec": {
        "language": "cuda",
        "target_hardware": ["NVIDIA H200"],
        "entry_point": "kernel.cu::run",
        "dependencies": [],
        "binding": "tvm-ffi",
    },
    "sources": [{"path": "kernel.cu", "content": "// a kernel\n"}],
}


def post(api, **change):
    solution = copy.deepcopy(SOLUTION)
    for path, value in change.items():
        place = solution
        *parents, last = path.split("__")
        for name in parents:
            place = place[name]
        if value is None:
            del place[last]
        else:
            place[last] = value
    text = json.dumps({"solution": solution, "target": "h200"})
    return api.generic("POST", URL, text, content_type="application/json")


def test_a_solution_is_taken_unchanged(problems, alice_api):
    made = post(alice_api)
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["problem"], body["target"], body["name"]) == ("gemm_n7168_k5120", "h200", "tiles")
    assert (body["language"], body["binding"]) == ("cuda", "tvm-ffi")
    assert body["candidate"]["entry_symbol"] == "run"


def test_a_missing_binding_is_tvm_ffi(problems, alice_api):
    assert post(alice_api, spec__binding=None).json()["binding"] == "tvm-ffi"


def test_an_unknown_extra_field_is_accepted(problems, alice_api):
    assert post(alice_api, license="MIT").status_code == 201


def test_a_refused_language_lists_the_allowed_ones(problems, alice_api):
    told = problem_of(post(alice_api, spec__language="cutile"), 400)
    (error,) = told["errors"]
    assert error["pointer"] == "solution.spec.language"
    for language in ("'cuda'", "'cpp'", "'triton'", "'python'"):
        assert language in error["message"]


def test_an_evaluation_inside_a_solution_is_not_taken(problems, alice_api):
    made = post(alice_api, evaluation={"status": "PASSED"}).json()
    assert (made["state"], made["verdict"], made["score"]) == ("QUEUED", None, None)


@pytest.mark.parametrize(
    ("change", "pointer", "part"),
    [
        ({"spec__language": "cutile"}, "solution.spec.language", "'cuda'"),
        ({"spec__language": "python"}, "solution.spec.language", "is not run"),
        ({"spec__language": "triton"}, "solution.spec.binding", "takes binding c"),
        ({"spec__binding": "torch"}, "solution.spec.binding", "'torch' is not run"),
        ({"spec__entry_point": "kernel.cu"}, "solution.spec.entry_point", "file::symbol"),
        ({"spec__entry_point": "a::b::c"}, "solution.spec.entry_point", "file::symbol"),
        ({"spec__entry_point": "no.cu::run"}, "solution.spec.entry_point", "not among the sources"),
        ({"spec__dependencies": ["cublas"]}, "solution.spec.dependencies[0]", "banned"),
        ({"definition": "gemm_x"}, "solution.definition", "'gemm_x' is not known"),
        ({"spec__dependencies": ["numpy"]}, "solution.spec.dependencies", "nothing is installed"),
        (
            {"spec__destination_passing_style": False},
            "solution.spec.destination_passing_style",
            "must be true",
        ),
        ({"name": "a\x00"}, "solution.name", "NUL"),
        ({"name": "a\ud800"}, "solution.name", "unicode string"),
    ],
)
def test_one_wrong_thing_is_named_by_its_field(problems, alice_api, change, pointer, part):
    told = problem_of(post(alice_api, **change), 400)
    assert pointer in pointers(told)
    assert any(part in error["message"] for error in told["errors"]), told["errors"]


@pytest.mark.parametrize(
    "path",
    ["/abs/k.cu", "../k.cu", "a/../../k.cu", "..\\k.cu", "C:\\k.cu", "k.cu/", "k\x00.cu", ""],
)
def test_a_bad_path_is_named_by_its_field(problems, alice_api, path):
    told = problem_of(post(alice_api, sources=[{"path": path, "content": "x"}]), 400)
    assert "solution.sources[0].path" in pointers(told)


def test_two_paths_that_are_one_are_refused(problems, alice_api):
    files = [{"path": path, "content": "x"} for path in ("kernel.cu", "./kernel.cu")]
    told = problem_of(post(alice_api, sources=files), 400)
    assert "solution.sources[1].path" in pointers(told)


def test_several_errors_come_in_one_answer(problems, alice_api):
    told = problem_of(post(alice_api, spec__language="cutile", spec__entry_point="a"), 400)
    assert set(pointers(told)) == {"solution.spec.language", "solution.spec.entry_point"}


def test_an_unknown_target_lists_the_known_ones(problems, alice_api):
    body = {"solution": SOLUTION, "target": "h300"}
    told = problem_of(alice_api.post(URL, body, format="json"), 400)
    assert told["errors"][0]["pointer"] == "target"
    assert "h200, h100, b200, host" in told["errors"][0]["message"]


def test_what_is_no_solution_is_400(problems, alice_api):
    problem_of(alice_api.post(URL, {"solution": 3, "target": "h200"}, format="json"), 400)
