"""The box itself: what a confined process sees, what it cannot do, and how it ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.process import Limits
from evaluator.records.evidence import Ending
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import (
    NOBODY,
    UNSAFE_VARIABLE,
    OutputRefused,
    OutputTooLarge,
    Sandbox,
    read_output,
    why_broken,
)


@pytest.fixture(scope="module")
def sandbox():
    return Sandbox.find()


@pytest.fixture
def shell(sandbox):
    """Run a shell script in a fresh workspace; the workspace's files stay readable."""

    def run(script, timeout_seconds=10.0, **options):
        with sandbox.scratch() as workspace:
            return sandbox.run(
                ["/bin/sh", "-c", script],
                workspace=workspace,
                timeout_seconds=timeout_seconds,
                **options,
            )

    return run


def test_it_runs_as_nobody_without_capabilities(shell):
    report = shell("id -u; id -g; grep -E 'CapEff|NoNewPrivs' /proc/self/status")
    assert report.output_tail.split() == [
        "65534", "65534", "CapEff:", "0000000000000000", "NoNewPrivs:", "1",
    ]  # fmt: skip
    assert report.sandboxed is True


def test_it_sees_nothing_of_the_worker(shell, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("key")
    report = shell(f"ls /; ls /etc; cat {secret} /etc/passwd /root/.bashrc; ls /tmp /build")
    assert report.exit_code == 0
    lines = report.output_tail.splitlines()
    assert {"home", "root", "work", "var", "srv", "sys"}.isdisjoint(lines)
    assert "key" not in lines
    assert report.output_tail.count("No such file or directory") == 3


def test_it_has_only_the_named_environment(shell, monkeypatch):
    monkeypatch.setenv("PTXBOARD_WORKER_TOKEN", "do-not-leak")
    report = shell("env | cut -d= -f1 | sort; cat /proc/1/environ", env={"NAMED": "1"})
    names = report.output_tail.split("\n")[:7]
    assert names == ["HOME", "LANG", "LC_ALL", "NAMED", "PATH", "PWD", "TMPDIR"]
    assert "do-not-leak" not in report.output_tail


def test_it_has_no_network(shell):
    report = shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1; cat /proc/net/route | wc -l")
    assert report.output_tail.split() == ["lo", "1"]


def test_it_shows_no_path_of_the_worker_in_any_command_line(sandbox):
    with sandbox.scratch() as workspace:
        report = sandbox.run(
            ["/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; pwd"],
            workspace=workspace,
            timeout_seconds=10,
        )
    assert "bwrap" in report.output_tail
    assert str(workspace) not in report.output_tail
    assert report.output_tail.endswith("/build\n")


def test_it_cannot_write_outside_its_workspace_and_tmp(shell):
    report = shell("for place in / /usr /etc /lib /dev /proc/sys; do touch $place/x; done")
    assert report.output_tail.count("cannot touch") == 6
    assert shell("touch /tmp/x /dev/shm/x x && echo x > /dev/null").exit_code == 0


def test_it_cannot_make_another_user_namespace(shell):
    assert shell("unshare --user true").exit_code != 0


def test_it_leaves_results_in_the_workspace(sandbox):
    with sandbox.scratch() as workspace:
        sandbox.run(["/bin/sh", "-c", "echo 7 > result"], workspace=workspace, timeout_seconds=10)
        assert read_output(workspace, "result", limit_bytes=10) == b"7\n"
        if os.geteuid() == 0 and sandbox.setpriv is not None:
            assert (workspace / "result").stat().st_uid == NOBODY
    assert not workspace.exists()


def test_it_starts_in_the_named_folder_with_the_named_mounts(sandbox, tmp_path):
    (tmp_path / "note").write_text("seen")
    with sandbox.scratch() as workspace:
        (workspace / "src").mkdir()
        report = sandbox.run(
            ["/bin/sh", "-c", f"pwd; cat {tmp_path}/note; touch {tmp_path}/x"],
            workspace=workspace,
            cwd="src",
            read_only=(tmp_path,),
            timeout_seconds=10,
        )
    assert report.output_tail.startswith("/build/src\nseen")
    assert "Read-only file system" in report.output_tail


def test_it_kills_everything_at_the_time_limit(shell):
    started = time.monotonic()
    report = shell("(sleep 97 &) ; setsid sleep 98 & sleep 99", timeout_seconds=0.5)
    assert time.monotonic() - started < 3
    assert report.ending is Ending.TIMED_OUT
    assert report.detail == "still running after 0.5 s, limit reached"
    assert report.exit_code is None
    assert not {b"sleep\x0097\x00", b"sleep\x0098\x00"} & set(_all_commands())


def test_nothing_outlives_a_worker_that_was_killed():
    code = (
        "from evaluator.sandbox import Sandbox; from pathlib import Path; import tempfile; "
        "p = Sandbox.find().popen(['/bin/sh', '-c', 'echo up; setsid sleep 94'], "
        "workspace=Path(tempfile.mkdtemp())); print('started', flush=True); p.wait(60)"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert worker.stdout.readline() == b"started\n"
    _until(lambda: b"sleep\x0094\x00" in _all_commands())
    worker.kill()
    worker.wait()
    worker.stdout.close()
    _until(lambda: b"sleep\x0094\x00" not in _all_commands())


def _until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _all_commands():
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(path.read_bytes())
        except OSError:
            continue
    return commands


def test_it_survives_a_flood_of_output(shell):
    report = shell("echo first; yes flood | head -c 6000000; echo last")
    assert report.ending is Ending.FINISHED
    assert report.output_truncated is True
    assert len(report.output_tail) < (64 << 10) + 100
    assert report.output_tail.startswith("first\nflood\n")
    assert report.output_tail.endswith("flood\nlast\n")
    assert "bytes left out" in report.output_tail


def test_it_names_the_signal_that_ended_the_process(shell):
    report = shell("kill -SEGV $$")
    assert (report.ending, report.signal, report.exit_code) == (Ending.CRASHED, 11, None)
    assert report.detail == "ended by signal 11 (SIGSEGV)"


def test_it_takes_a_kill_that_is_not_ours_for_lack_of_memory(shell):
    assert shell("kill -KILL $$").ending is Ending.OUT_OF_MEMORY


def test_it_stops_a_process_that_used_up_its_processor_time(shell):
    report = shell("while :; do :; done", limits=Limits(cpu_seconds=1))
    assert (report.ending, report.detail) == (Ending.TIMED_OUT, "used up its processor time")


def test_it_limits_files_processes_and_memory(shell):
    limits = Limits(file_bytes=1 << 20, open_files=32, processes=16, address_space_bytes=512 << 20)
    report = shell(
        "head -c 2000000 /dev/zero > big; ls -l big; cat /proc/self/limits", limits=limits
    )
    flat = " ".join(report.output_tail.split())
    assert " 1048576 " in flat
    assert "Max open files 32 32 files" in flat
    assert "Max processes 16 16 processes" in flat
    assert "Max address space 536870912 536870912 bytes" in flat
    assert shell("for i in $(seq 64); do sleep 3 & done; wait", limits=limits).exit_code != 0


def test_it_does_not_believe_a_candidate_that_prints_our_words(shell):
    report = shell("echo 'bwrap: Creating new namespace failed'; exit 1")
    assert (report.ending, report.exit_code) == (Ending.FINISHED, 1)


def test_it_takes_the_blame_for_a_mount_that_does_not_exist(shell):
    with pytest.raises(EvaluatorFault, match=r"sandbox: sh could not be started: .*/nosuch"):
        shell("true", read_only=(Path("/nosuch/folder"),))


def test_it_keeps_descriptors_that_are_passed(sandbox):
    read_end, write_end = os.pipe()
    with sandbox.scratch() as workspace:
        process = sandbox.popen(
            ["/bin/bash", "-c", f"echo hello >&{write_end}"],
            workspace=workspace,
            pass_fds=(write_end,),
        )
        os.close(write_end)
        assert process.wait(10).exit_code == 0
    assert os.read(read_end, 100) == b"hello\n"
    os.close(read_end)


def test_it_ends_a_process_on_request(sandbox):
    with sandbox.scratch() as workspace:
        process = sandbox.popen(["/bin/sleep", "60"], workspace=workspace)
        assert process.poll() is None
        process.kill(Ending.DEVICE_ERROR)
        report = process.wait(10)
    assert (report.ending, report.detail) == (Ending.DEVICE_ERROR, "ended by the evaluator")


def test_it_refuses_to_go_without_bubblewrap_and_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(UNSAFE_VARIABLE, raising=False)
    with pytest.raises(EvaluatorFault, match="apt-get install bubblewrap"):
        Sandbox.find()


def test_it_goes_without_only_when_told_and_says_so_in_every_report(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(UNSAFE_VARIABLE, "1")
    sandbox = Sandbox.find()
    assert sandbox.description.startswith("none (PTXBOARD_UNSAFE_NO_SANDBOX=1)")
    with sandbox.scratch() as workspace:
        report = sandbox.run(
            ["/bin/sh", "-c", "pwd; env | cut -d= -f1 | sort | head -1; exit 4"],
            workspace=workspace,
            timeout_seconds=10,
        )
        assert report.output_tail.splitlines() == [str(workspace), "HOME"]
    assert (report.sandboxed, report.exit_code) == (False, 4)


def test_without_a_sandbox_the_group_still_dies_at_the_limit():
    sandbox = Sandbox(bubblewrap=None)
    started = time.monotonic()
    with sandbox.scratch() as workspace:
        report = sandbox.run(
            ["/bin/sh", "-c", "sleep 96 & sleep 95"], workspace=workspace, timeout_seconds=0.5
        )
    assert report.ending is Ending.TIMED_OUT
    assert time.monotonic() - started < 3


def test_it_finds_out_when_the_box_does_not_close(monkeypatch):
    assert why_broken(Sandbox(bubblewrap=None)) != ""


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputRefused, match="expected a regular file, found kind 40000"):
        read_output(tmp_path, "out", limit_bytes=10)


def test_a_link_that_a_candidate_left_is_not_followed(tmp_path):
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(EvaluatorFault, match="expected a regular file, found a link"):
        read_output(tmp_path, "link", limit_bytes=100)
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(EvaluatorFault, match="leads out of the workspace"):
        read_output(tmp_path, "out/hostname", limit_bytes=100)


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(EvaluatorFault, match="expected a regular file"):
        read_output(tmp_path, "pipe", limit_bytes=100)


def test_a_file_above_the_limit_is_not_read(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 101)
    with pytest.raises(OutputTooLarge, match="101 bytes, at most 100"):
        read_output(tmp_path, "large", limit_bytes=100)
    assert read_output(tmp_path, "absent", limit_bytes=100) is None


def test_a_hidden_file_of_a_visible_folder_reads_as_nothing(shell, tmp_path):
    tmp_path.chmod(0o755)
    for name in ("hidden.so", "shown.so"):
        (tmp_path / name).write_text(f"text of {name}")
    report = shell(
        f"cat {tmp_path}/hidden.so; cat {tmp_path}/shown.so",
        read_only=(tmp_path,),
        hidden=(tmp_path / "hidden.so",),
    )
    assert "text of shown.so" in report.output_tail
    assert "text of hidden.so" not in report.output_tail
