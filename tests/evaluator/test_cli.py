"""`ptxboard` as one types it: exit codes, one line per stage, words for what is wrong."""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.cli import evaluate
from evaluator.problems import load_problems, prototype
from evaluator.records.evaluation import EvaluationRecord
from evaluator.records.verdicts import Verdict
from evaluator.targets import TARGETS

pytestmark = pytest.mark.serial

HOST_GEMM = Path("examples/kernels/gemm_host.cpp")
CANDIDATES = Path(__file__).parent.parent / "candidates"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, tmp_path_factory):
    """Builds cached for the session, and a machine without a GPU wherever the tests run."""
    monkeypatch.setattr(evaluate, "CACHE_FOLDER", tmp_path_factory.getbasetemp() / "cli-builds")
    monkeypatch.setattr(evaluate, "gpu_facts", lambda: {"device_name": None})


@pytest.fixture
def ptxboard(capsys):
    """Run a command line; exit code, stdout, stderr."""

    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def kernel(tmp_path):
    def write(text, name="kernel.cu"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def on(target, problem="gemm_n256_k256"):
    return ("--problem", problem, "--target", target)


def test_a_candidate_that_fails_exits_1_with_the_reason(ptxboard):
    code, out, err = ptxboard("evaluate", CANDIDATES / "syntax_error/kernel.cu", *on("h200"))
    assert code == 1
    assert out.startswith('COMPILE_ERROR: kernel.cu(10): error: expected a ";"')
    assert "not reached: sass, sanitizer, correctness, counters, timing" in out
    assert [line.split()[:2] for line in err.splitlines()] == [
        ["policy", "PASSED"],
        ["compilation", "COMPILE_ERROR"],
    ]


def test_without_the_gpu_it_builds_and_says_what_is_missing(ptxboard, kernel):
    text = prototype(load_problems()["gemm_n256_k256"], "c", "cuda")
    code, out, err = ptxboard("evaluate", kernel(text), *on("h200"))
    assert code == 3
    assert out == (
        "BUILD PASSED: the build is done; the remaining stages need an H200, "
        "this machine has no GPU\n"
    )
    assert [line.split()[0] for line in err.splitlines()] == ["policy", "compilation", "sass"]


def test_another_gpu_does_not_stand_in(ptxboard, kernel, monkeypatch):
    monkeypatch.setattr(evaluate, "gpu_facts", lambda: {"device_name": "NVIDIA H100 80GB HBM3"})
    text = prototype(load_problems()["gemm_n256_k256"], "c", "cuda")
    code, out, _ = ptxboard("evaluate", kernel(text), *on("h200"))
    assert code == 3
    assert "need an H200, this machine has NVIDIA H100 80GB HBM3" in out


def test_a_target_that_nobody_runs_says_so(ptxboard, kernel):
    text = prototype(load_problems()["gemm_n256_k256"], "c", "cuda")
    code, out, _ = ptxboard("evaluate", kernel(text), *on("b200"))
    assert code == 3
    assert "nobody runs NVIDIA B200 kernels" in out


def test_the_record_alone_is_printed_when_asked_for(ptxboard):
    code, out, _ = ptxboard("evaluate", CANDIDATES / "no_extern_c/kernel.cu", *on("h200"), "--json")
    assert code == 1
    record = EvaluationRecord.from_json(out)
    assert record.verdict is Verdict.ENTRY_POINT_MISSING
    assert record.format == "ptxboard.evaluation/1"
    assert [stage.stage.value for stage in record.stages] == ["policy", "compilation"]
    assert record.environment.sandbox.startswith("bubblewrap")


def test_an_unfinished_evaluation_has_another_format_name(ptxboard, kernel):
    text = prototype(load_problems()["gemm_n256_k256"], "c", "cuda")
    code, out, err = ptxboard("evaluate", kernel(text), *on("h200"), "--json")
    assert code == 3
    unfinished = json.loads(out)
    assert unfinished["format"] == "ptxboard.unfinished/1"
    assert unfinished["stages_not_reached"] == ["sanitizer", "correctness", "counters", "timing"]
    assert "need an H200" in err


def test_a_host_kernel_goes_all_the_way(ptxboard, tmp_path):
    code, out, err = ptxboard("evaluate", HOST_GEMM, *on("host"), "--keep", tmp_path / "kept")
    assert code == 0, out + err
    assert out.startswith("PASSED: ")
    assert "speedup" in out
    assert [line.split()[:2] for line in err.splitlines()] == [
        [stage, "PASSED"] for stage in ("policy", "compilation", "correctness", "timing")
    ]
    record = EvaluationRecord.from_json((tmp_path / "kept" / "record.json").read_text())
    assert record.score is not None
    library = record.stages[1].evidence.library
    kept = (tmp_path / "kept" / library.sha256).read_bytes()
    assert hashlib.sha256(kept).hexdigest() == library.sha256


def test_a_python_file_is_taken_as_triton(ptxboard, tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(prototype(load_problems()["gemm_n256_k256"], "c", "triton"))
    code, out, _ = ptxboard("evaluate", path, *on("h200"), "--json")
    assert code == 3
    assert json.loads(out)["stages"][1]["evidence"]["compiler_version"].startswith("triton ")
    code, _, err = ptxboard("evaluate", path, *on("host"))
    assert code == 2
    assert "kernel.py: host takes no Triton; allowed: cpp" in err


def test_several_files_keep_their_folders(ptxboard, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.h").write_text("#define VALUE 1\n")
    entry = tmp_path / "main.cpp"
    entry.write_text('#include "parts/part.h"\nextern "C" int other() { return VALUE; }\n')
    files = (tmp_path / "parts" / "part.h", entry)
    code, out, _ = ptxboard("evaluate", *files, *on("host"), "--entry", "main.cpp", "--json")
    assert code == 1
    candidate = EvaluationRecord.from_json(out).candidate
    assert candidate.entry_file == "main.cpp"
    assert [source.path for source in candidate.sources] == ["parts/part.h", "main.cpp"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (on("h200", "gemm"), "problem 'gemm' is not known; known problems: gemm_n7168_k5120,"),
        (on("h20"), "target 'h20' is not known; known targets: h200, h100, b200, host"),
        (on("host", "gemm_n7168_k5120"), "is not for target 'host'; h200, h100, b200"),
        ((*on("host"), "--binding", "tvm-ffi"), "binding 'tvm-ffi' is not known on host"),
        ((*on("h200"), "--binding", "torch"), "binding 'torch' is not known on h200; allowed: c"),
        ((*on("h200"), "--entry", "other.cu"), "entry file 'other.cu' is not among the sources"),
    ],
)
def test_wrong_usage_exits_2_and_names_what_is_known(ptxboard, kernel, arguments, words):
    code, out, err = ptxboard("evaluate", kernel("int x;\n"), *arguments)
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"// caf\xe9\n", "kernel.cu: not UTF-8, offset 6"),
        ("int x;".encode("utf-16"), "kernel.cu: file is UTF-16; save it as UTF-8"),
        (b"x" * ((1 << 20) + 1), "sources hold 1048577 bytes, at most 1048576"),
    ],
)
def test_a_file_that_cannot_be_taken_exits_2(ptxboard, tmp_path, data, words):
    path = tmp_path / "kernel.cu"
    path.write_bytes(data)
    code, _, err = ptxboard("evaluate", path, *on("h200"))
    assert code == 2
    assert words in err


def test_a_missing_file_or_option_exits_2(ptxboard, tmp_path):
    code, _, err = ptxboard("evaluate", tmp_path / "absent.cu", *on("h200"))
    assert (code, "No such file" in err) == (2, True)
    assert ptxboard("evaluate", tmp_path / "absent.cu")[0] == 2
    assert ptxboard()[0] == 2


def test_a_fault_of_the_machine_exits_3_with_the_fix(ptxboard, kernel, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTXBOARD_UNSAFE_NO_SANDBOX", raising=False)
    code, _, err = ptxboard("evaluate", kernel("int x;\n"), *on("h200"))
    assert code == 3
    assert "fault of this machine" in err
    assert "apt-get install bubblewrap" in err


def test_a_missing_part_of_the_installation_exits_3_with_the_fix(ptxboard, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = ptxboard("admit", "gemm_n256_k256")
    assert code == 3
    assert "pip install 'ptxboard[worker]'" in err


def test_an_interrupt_exits_as_shells_expect(ptxboard, kernel, monkeypatch):
    def interrupt(work, bench, lane):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "run_lane", interrupt)
    assert ptxboard("evaluate", kernel("int x;\n"), *on("h200"))[0] == 130


def test_problems_and_targets_are_listed(ptxboard):
    code, out, _ = ptxboard("problems")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["PROBLEM", *load_problems()]
    code, out, _ = ptxboard("targets")
    assert [line.split()[0] for line in out.splitlines()] == ["TARGET", *TARGETS]
    assert "sm_100a" in out


def test_problems_and_targets_are_listed_as_json(ptxboard):
    problems = json.loads(ptxboard("problems", "--json")[1])
    assert [row["name"] for row in problems] == list(load_problems())
    assert problems[0]["digest"] == load_problems()["gemm_n7168_k5120"].digest
    targets = json.loads(ptxboard("targets", "--json")[1])
    assert [row["slug"] for row in targets] == list(TARGETS)


def test_the_doctor_finds_this_machine_fit_to_build(ptxboard):
    code, out, _ = ptxboard("doctor", "--json")
    report = json.loads(out)
    states = {ability["name"]: ability["state"] for ability in report["abilities"]}
    assert states["sandbox"] == states["nvcc"] == states["cuobjdump"] == "ok"
    assert code == (0 if report["fit"] else 3)
    assert "ABILITY" in ptxboard("doctor")[1]


def test_the_doctor_exits_3_with_the_fix_when_something_is_missing(ptxboard, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTXBOARD_UNSAFE_NO_SANDBOX", raising=False)
    code, out, _ = ptxboard("doctor")
    assert code == 3
    assert "apt-get install bubblewrap" in out
    assert out.rstrip().splitlines()[-1].startswith("Missing here: sandbox")


def test_a_problem_is_admitted_only_with_its_proof(ptxboard):
    code, out, _ = ptxboard("admit", "gemm_n256_k256", "--device", "cpu")
    assert code == 0
    assert out.rstrip().endswith("gemm_n256_k256: admitted (cpu)")
    code, _, err = ptxboard("admit", "gem")
    assert code == 2
    assert "problem 'gem' is not known" in err


def bundle(path, files, manifest=None):
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", json.dumps(manifest or {"files": digests}))
    return path


FILES = {"record.json": b"{}", "artifacts/one": b"bytes"}


def test_a_whole_bundle_is_verified(ptxboard, tmp_path):
    code, out, _ = ptxboard("verify", bundle(tmp_path / "b.zip", FILES))
    assert code == 0
    assert "2 files" in out
    assert out.rstrip().endswith("every SHA-256 as in the manifest")


def test_a_changed_a_missing_and_an_added_file_are_named(ptxboard, tmp_path):
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    changed = {"record.json": b"{ }", "extra": b"x"}
    code, out, _ = ptxboard("verify", bundle(tmp_path / "b.zip", changed, {"files": digests}))
    assert code == 1
    assert "artifacts/one: in the manifest, not in the archive" in out
    assert "extra: in the archive, not in the manifest" in out
    assert f"the manifest says {digests['record.json']}" in out
    assert out.rstrip().splitlines()[-1].startswith("b.zip: 3 faults in 2 files")


def chained(records):
    """Files of a bundle whose stages follow one another as the site writes them."""
    candidate = b'{"problem":"p"}'
    files, previous = {"candidate.json": candidate}, hashlib.sha256(candidate).hexdigest()
    for number, record in enumerate(records, 1):
        text = json.dumps({"previous": previous, "record": record}, sort_keys=True)
        text = text.replace(": ", ":").replace(", ", ",")
        digest = hashlib.sha256(text.encode()).hexdigest()
        entry = {"previous": previous, "digest": digest, "record": record}
        files[f"stages/{number:02d}_stage.json"] = json.dumps(entry).encode()
        previous = digest
    return files, previous


def test_a_chain_of_stages_is_followed(ptxboard, tmp_path):
    files, last = chained([{"stage": "policy"}, {"stage": "compilation"}])
    code, out, _ = ptxboard("verify", bundle(tmp_path / "b.zip", files))
    assert code == 0
    assert out.rstrip().endswith(f"chain of 2 stages holds, last digest {last}")


def test_a_record_changed_together_with_the_manifest_breaks_the_chain(ptxboard, tmp_path):
    files, _ = chained([{"verdict": "COMPILE_ERROR"}, {"verdict": "PASSED"}])
    first = files["stages/01_stage.json"]
    files["stages/01_stage.json"] = first.replace(b"COMPILE_ERROR", b"PASSED")
    code, out, _ = ptxboard("verify", bundle(tmp_path / "b.zip", files))
    assert code == 1
    assert "stages/01_stage.json: says digest" in out


def test_a_stage_taken_out_breaks_the_chain(ptxboard, tmp_path):
    files, _ = chained([{"stage": "policy"}, {"stage": "compilation"}])
    del files["stages/01_stage.json"]
    code, out, _ = ptxboard("verify", bundle(tmp_path / "b.zip", files))
    assert code == 1
    assert "stages/02_stage.json: follows" in out


def test_another_candidate_breaks_the_chain(ptxboard, tmp_path):
    files, _ = chained([{"stage": "policy"}])
    files["candidate.json"] = b"{}"
    assert ptxboard("verify", bundle(tmp_path / "b.zip", files))[0] == 1


def test_an_artifact_under_a_wrong_name_is_named(ptxboard, tmp_path):
    name = f"artifacts/library_{'0' * 64}"
    code, out, _ = ptxboard("verify", bundle(tmp_path / "b.zip", {name: b"bytes"}))
    assert code == 1
    assert f"{name}: its bytes have SHA-256" in out


@pytest.mark.parametrize(
    ("manifest", "words"),
    [({"files": [1]}, "expected 'files' to map each path"), ({"other": 1}, "expected 'files'")],
)
def test_a_manifest_of_another_shape_exits_2(ptxboard, tmp_path, manifest, words):
    code, _, err = ptxboard("verify", bundle(tmp_path / "b.zip", FILES, manifest))
    assert code == 2
    assert words in err


def test_what_is_no_bundle_exits_2(ptxboard, tmp_path):
    path = tmp_path / "b.zip"
    path.write_bytes(b"no zip")
    assert ptxboard("verify", path)[0] == 2
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    code, _, err = ptxboard("verify", path)
    assert (code, "no manifest.json" in err) == (2, True)
