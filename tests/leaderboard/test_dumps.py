"""A dump of everything public: it reloads to the same boards, and is refused when changed."""

import json
import zipfile

import pytest
from django.core.management import CommandError, call_command

from evaluator.records.trace_set import read_trace_set
from leaderboard.models import (
    Artifact,
    Entrant,
    Evaluation,
    ModelRun,
    ModelStanding,
    Problem,
    Submission,
    Turn,
)
from leaderboard.services.dumps import digest_of_file, files_of
from leaderboard.services.imports import turns_import
from leaderboard.services.imports_published import published_load
from leaderboard.services.standings_update import standing_update
from tests.leaderboard import factories, run_factories
from tests.leaderboard.test_imports import GOOD, NOTES, row, write  # noqa: F401 - a fixture

GEMM = "gemm_n7168_k5120"
BOARDS = (
    f"/api/v1/boards/h200/{GEMM}/",
    "/api/v1/boards/h200/?trust=all",
    "/api/v1/boards/h100/?trust=all&p=0.4",
    f"/api/v1/boards/h200/{GEMM}/fast-p/?trust=all",
    "/api/v1/boards/h100.csv?trust=all",
)


@pytest.fixture
def site(problems, alice, alice_entrant, write):  # noqa: F811
    """A kernel of a person, one that failed, an ended and an open run, reports and figures."""
    problem = problems[GEMM]
    for speedup in (0.94, 1.1):
        made = factories.submission(by=alice_entrant, problem=problem)
        factories.evaluated(made, factories.stages(problem.record, speedup=speedup))
    broken = factories.failing(*failing(problem))
    factories.evaluated(factories.submission(by=alice_entrant, problem=problem), broken)
    run = run_factories.run(problem, owner=alice, turns=4, created_at=factories.NOW)
    place = run_factories.trajectory(run)
    run_factories.turn(place, kernel=factories.KERNEL, speedup=0.7)
    run_factories.turn(place)
    standing_update(run_factories.finish(run))
    going = run_factories.run(problem, owner=alice, model="other")
    run_factories.turn(run_factories.trajectory(going), kernel=factories.KERNEL, speedup=0.5)
    standing_update(going)
    turns_import(path=write(GOOD, row(turn=1, speedup=0.6)), notes=NOTES)
    published_load()
    return run


def failing(problem):
    from evaluator.records.verdicts import Stage, Verdict

    stages = factories.stages(problem.record)
    return stages, Stage.COMPILATION, Verdict.COMPILE_ERROR, "it does not compile"


@pytest.fixture
def dump(site, tmp_path):
    folder = tmp_path / "dump"
    call_command("dump", str(folder), verbosity=0)
    return folder


def forget(settings, tmp_path):
    """The other site, which has nothing."""
    Turn.objects.update(parent=None)
    for model in (ModelRun, ModelStanding, Evaluation, Submission, Artifact, Entrant, Problem):
        model.objects.all().delete()
    settings.PTXBOARD_ARTIFACTS = tmp_path / "elsewhere"


def shown(client):
    """Every board as it is told, times of our own rows left out."""
    told = []
    for url in BOARDS:
        answer = client.get(url)
        assert answer.status_code == 200, url
        told.append(answer.content if ".csv" in url else _timeless(answer.json()))
    return told


def _timeless(value):
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key != "updated_at"}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def test_it_reloads_to_the_same_boards(dump, visitor_api, settings, tmp_path, capsys):
    # a run that goes on is in no dump and so on no board of it; its kernel is
    ModelRun.objects.get(model="other").delete()
    ModelStanding.objects.filter(entrant__display_name="other").delete()
    before = shown(visitor_api)
    assert [len(told["rows"]) for told in before[:3]] == [4, 1, 12]
    forget(settings, tmp_path)
    call_command("load", str(dump))
    assert capsys.readouterr().out.endswith("the boards are those of the dump\n")
    assert shown(visitor_api) == before
    assert ModelStanding.objects.filter(trust="published").count() == 75
    assert all(turn.digest == turn.computed_digest for turn in Turn.objects.all())


def test_loading_it_twice_changes_nothing(dump, settings, tmp_path, capsys):
    forget(settings, tmp_path)
    for _ in range(2):
        call_command("load", str(dump))
    last = capsys.readouterr().out.splitlines()[-1]
    told = "0 problems, 0 runs, 0 submissions, 0 published rows; 6 were here already"
    assert last == told


def test_it_is_a_flashinfer_trace_set(dump):
    found = read_trace_set(dump)
    current = Problem.objects.current().values_list("name", flat=True)
    assert set(found.definitions) == set(current)
    assert len(found.workloads) == len(current)
    assert len(found.solutions) == len(found.traces) == 5
    speedups = sorted(
        trace.evaluation.performance.speedup_factor
        for trace in found.traces
        if trace.evaluation.performance
    )
    assert speedups == pytest.approx([0.5, 0.7, 0.94, 1.1], rel=1e-3)
    assert {trace.solution for trace in found.traces} == set(found.solutions)


def test_it_leaves_out_runs_that_go_on_and_says_so(dump):
    going = ModelRun.objects.get(model="other")
    manifest = json.loads((dump / "manifest.json").read_text())
    assert manifest["left_out"] == {str(going.pk): "the run is RUNNING"}
    assert not (dump / "ptxboard" / "runs" / f"{going.pk}.zip").exists()


def test_no_key_account_or_address_of_an_endpoint_is_in_it(dump):
    for path in dump.rglob("*"):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                data = b"".join(archive.read(name) for name in archive.namelist())
        elif path.is_file():
            data = path.read_bytes()
        else:
            continue
        for secret in (b"secret-path", b"correct horse", b"pbkdf2"):
            assert secret not in data, path


def test_trust_and_conditions_of_reported_runs_survive(dump, settings, tmp_path):
    forget(settings, tmp_path)
    call_command("load", str(dump), verbosity=0)
    run = ModelRun.objects.get(name="opus-gemm")
    assert (run.trust, run.scoring_version, run.base_url) == ("self-reported", "test", "")
    again = turns_import(path=tmp_path / "turns.csv", notes=NOTES)
    assert again.known == 1


def test_a_changed_file_is_refused_and_nothing_is_loaded(dump, settings, tmp_path):
    forget(settings, tmp_path)
    (dump / "ptxboard" / "published.json").write_text("[]")
    with pytest.raises(CommandError, match=r"published\.json: expected SHA-256 .*, found"):
        call_command("load", str(dump))
    assert not Problem.objects.exists()


def test_a_file_too_many_or_too_few_is_refused(dump):
    (dump / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"notes\.txt is not in the manifest"):
        call_command("load", str(dump))
    (dump / "notes.txt").unlink()
    (dump / "README.md").unlink()
    with pytest.raises(CommandError, match=r"README\.md: expected SHA-256 .*, found no file"):
        call_command("load", str(dump))


def test_boards_that_the_turns_do_not_give_are_refused(dump, settings, tmp_path):
    """Somebody who forges a standing must forge the turns too, and those are in chains."""
    forget(settings, tmp_path)
    path = dump / "ptxboard" / "standings.json"
    told = json.loads(path.read_text())
    forged = next(one for one in told if one["trust"] == "verified" and one["is_final"])
    forged["rate_8"] = 1.0
    path.write_text(json.dumps(told))
    manifest = json.loads((dump / "manifest.json").read_text())
    manifest["files"]["ptxboard/standings.json"] = digest_of_file(path)
    (dump / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CommandError, match=r"rate_8 is 1\.0 in the dump, its turns give 0\.25"):
        call_command("load", str(dump))
    assert not ModelRun.objects.exists()


def test_a_dump_that_was_not_ended_is_refused(dump):
    (dump / "manifest.json").unlink()
    with pytest.raises(CommandError, match=r"no manifest\.json; it is no dump, or one that was n"):
        call_command("load", str(dump))


def test_a_folder_that_holds_something_is_no_place_for_a_dump(dump):
    before = files_of(dump)
    with pytest.raises(CommandError, match="is there and not empty; name a folder that is new"):
        call_command("dump", str(dump))
    assert files_of(dump) == before
