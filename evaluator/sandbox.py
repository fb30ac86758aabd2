"""The box that compilers and candidates run in: bubblewrap, no network, no secrets, hard limits.

Inside, a process is uid 65534 in namespaces of its own (user, mount, pid, net, ipc, uts, cgroup),
sees /usr read-only, an empty /tmp, a minimal /dev, and its workspace at /build; every capability
is dropped, further user namespaces are refused, the environment holds only what is named here.
A worker that is root becomes uid 65534 for real first, wherever the paths to mount allow it.

What gets past it: kernel and driver bugs (no seccomp filter), disk filling by many small files,
timing side channels, and whatever the GPU driver's device nodes offer to any user.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypedDict, Unpack

from evaluator.process import Limits, RunningProcess, limited
from evaluator.records.evidence import ProcessReport
from evaluator.records.verdicts import EvaluatorFault

NOBODY = 65534
BUILD = Path("/build")
UNSAFE_VARIABLE = "PTXBOARD_UNSAFE_NO_SANDBOX"
TMP_BYTES = 2 << 30
SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
GPU_FOLDERS = ("/sys/devices", "/sys/bus/pci", "/sys/module/nvidia", "/etc/OpenCL")
BASE_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
}
INSTALL_HINT = (
    "install bubblewrap (apt-get install bubblewrap) and allow user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); "
    f"to run without a sandbox, which is marked on every result, set {UNSAFE_VARIABLE}=1"
)


class Options(TypedDict, total=False):
    """What a confined process gets beyond its workspace.

    cwd        folder below the workspace to start in
    read_only  further paths, mounted where they are
    hidden     files below visible folders that read as nothing inside
    env        variables beside BASE_ENVIRONMENT
    limits     of each process inside; `Limits()` when not given
    gpu        bind the NVIDIA device nodes
    pass_fds   descriptors that stay open inside, under the same numbers
    stdin      a descriptor; nothing to read when not given
    """

    cwd: str
    read_only: Sequence[Path]
    hidden: Sequence[Path]
    env: Mapping[str, str]
    limits: Limits
    gpu: bool
    pass_fds: Sequence[int]
    stdin: int | None


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """How this machine confines a process; made once by `Sandbox.find()`.

    bubblewrap       the bwrap binary; None: no confinement, every report says sandboxed=False
    setpriv          drops a root worker to uid 65534 before bwrap starts; None: user namespace only
    options          bwrap options that this machine supports beyond the common ones
    """

    bubblewrap: Path | None
    version: str = ""
    setpriv: Path | None = None
    options: tuple[str, ...] = ()

    @classmethod
    def find(cls) -> "Sandbox":
        """The strictest sandbox that works here.

        Raises EvaluatorFault with the fix when none works and the operator did not waive it.
        """
        found, reason = _find_working()
        if found is not None:
            return found
        if os.environ.get(UNSAFE_VARIABLE) == "1":
            return cls(bubblewrap=None)
        raise EvaluatorFault(f"no sandbox: {reason}; {INSTALL_HINT}")

    @property
    def sandboxed(self) -> bool:
        return self.bubblewrap is not None

    @property
    def description(self) -> str:
        if not self.sandboxed:
            return f"none ({UNSAFE_VARIABLE}=1): process group and resource limits only"
        identity = "real uid 65534" if self.setpriv else "uid 65534 by user namespace"
        return f"{self.version}, all namespaces unshared, no network, {identity}"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder that the confined user may own; removed afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="ptxboard-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout_seconds: float,
        **options: Unpack["Options"],
    ) -> ProcessReport:
        """Run to the end or to the limit, then report; nothing of it is left running.

        Raises EvaluatorFault when the sandbox itself could not be set up.
        """
        return self.popen(argv, workspace=workspace, **options).wait(timeout_seconds)

    def popen(
        self, argv: Sequence[str], *, workspace: Path, **options: Unpack["Options"]
    ) -> RunningProcess:
        """Start and return a handle; `workspace` is mounted writable at /build.

        The process dies with the thread that started it: that thread must wait for it.
        """
        workspace = workspace.resolve()
        mounts = tuple(path.absolute() for path in options.get("read_only", ()))
        confined = self._for_paths((workspace, *mounts))
        if confined.setpriv is not None:
            _give_to_nobody(workspace)
        launcher = limited(argv, options.get("limits") or Limits())
        pass_fds = tuple(options.get("pass_fds", ()))
        if not confined.sandboxed:
            child = confined._spawn(launcher, workspace, pass_fds, options)
            return RunningProcess(child=child, command=tuple(argv), status_end=None)
        box = confined._arguments(workspace, mounts, options)
        status_end, child_end = os.pipe()
        box_end = _readable([*box, "--json-status-fd", str(child_end)])
        launcher = [*confined._starter(), "--args", str(box_end), "--", *launcher]
        try:
            child = confined._spawn(launcher, workspace, (*pass_fds, child_end, box_end), options)
        except BaseException:
            os.close(status_end)
            raise
        finally:
            os.close(child_end)
            os.close(box_end)
        return RunningProcess(child=child, command=tuple(argv), status_end=status_end)

    def _spawn(
        self, launcher: list[str], workspace: Path, pass_fds: tuple[int, ...], options: "Options"
    ) -> subprocess.Popen[bytes]:
        stdin = options.get("stdin")
        try:
            return subprocess.Popen(
                launcher,
                cwd=None if self.sandboxed else workspace / options.get("cwd", "."),
                env={**BASE_ENVIRONMENT, **options.get("env", {})},
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except OSError as error:
            raise EvaluatorFault(f"{launcher[0]}: could not be started: {error}") from error

    def inside(self, workspace: Path) -> Path:
        """Where `workspace` lies as seen by a confined process."""
        return BUILD if self.sandboxed else workspace.resolve()

    @cached_property
    def _system_mounts(self) -> tuple[str, ...]:
        arguments = ["--ro-bind", "/usr", "/usr"]
        for folder in map(Path, SYSTEM_FOLDERS):
            if folder.is_symlink():
                arguments += ["--symlink", os.readlink(folder), str(folder)]
            elif folder.exists():
                arguments += ["--ro-bind", str(folder), str(folder)]
        for path in SYSTEM_FILES:
            arguments += ["--ro-bind-try", path, path]
        return tuple(arguments)

    def _starter(self) -> list[str]:
        drop = [str(self.setpriv), *_SETPRIV_ARGUMENTS] if self.setpriv else []
        return [*drop, str(self.bubblewrap)]

    def _arguments(self, workspace: Path, mounts: Sequence[Path], options: "Options") -> list[str]:
        arguments = [*_CONFINEMENT, *self.options]
        arguments += [*self._system_mounts, "--proc", "/proc", "--dev", "/dev"]
        arguments += self._bounded_tmpfs("/tmp") + self._bounded_tmpfs("/dev/shm")  # noqa: S108
        arguments += _gpu_mounts() if options.get("gpu") else []
        for path in mounts:
            if not path.is_relative_to("/usr"):
                arguments += ["--ro-bind", str(path), str(path)]
        for path in options.get("hidden", ()):
            arguments += ["--ro-bind", os.devnull, str(path)]
        folder = BUILD / options.get("cwd", ".")
        arguments += ["--bind", str(workspace), str(BUILD), "--chdir", str(folder)]
        return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/"]

    def _bounded_tmpfs(self, path: str) -> list[str]:
        """Old bubblewrap knows no sizes; it knows no --disable-userns either."""
        size = ["--size", str(TMP_BYTES)] if self.options else []
        return [*size, "--tmpfs", path]

    def _for_paths(self, paths: Sequence[Path]) -> "Sandbox":
        """Without the real uid drop when uid 65534 could not reach a path to be mounted."""
        if self.setpriv is None or all(_reachable(path.parent) for path in paths):
            return self
        return replace(self, setpriv=None)


_CONFINEMENT = (
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--uid",
    str(NOBODY),
    "--gid",
    str(NOBODY),
    "--hostname",
    "sandbox",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
)
_SETPRIV_ARGUMENTS = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")


def _find_working() -> tuple[Sandbox | None, str]:
    binary = shutil.which("bwrap")
    if binary is None:
        return None, "bubblewrap (bwrap) is not on PATH"
    setpriv = shutil.which("setpriv") if os.geteuid() == 0 else None
    version = _output_of([binary, "--version"]) or "bubblewrap"
    reason = ""
    for options in (("--disable-userns",), ()):
        for drop in [Path(setpriv), None] if setpriv else [None]:
            sandbox = Sandbox(
                bubblewrap=Path(binary), version=version, setpriv=drop, options=options
            )
            reason = why_broken(sandbox)
            if not reason:
                return sandbox, ""
    return None, f"bubblewrap does not work here: {reason}"


def why_broken(sandbox: Sandbox) -> str:
    """'' if a confined process is uid 65534 without network and can write its workspace."""
    probe = 'test "$(id -u)" = 65534 && test ! -e /etc/passwd && touch probe && cat /proc/net/dev'
    with sandbox.scratch() as workspace:
        try:
            report = sandbox.run(["/bin/sh", "-c", probe], workspace=workspace, timeout_seconds=10)
        except EvaluatorFault as fault:
            return str(fault)
    if report.exit_code != 0:
        return report.output_tail.strip()[-300:] or f"probe ended with {report.exit_code}"
    interfaces = [line.split(":")[0].strip() for line in report.output_tail.splitlines()[2:]]
    outside = [name for name in interfaces if name not in ("lo", "")]
    return f"the network is visible: {outside}" if outside else ""


def _output_of(argv: Sequence[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    return done.stdout.strip()


def _readable(arguments: Sequence[str]) -> int:
    """A descriptor with the arguments, so that no path of ours shows in the command line inside."""
    descriptor = os.memfd_create("arguments")
    os.write(descriptor, b"".join(argument.encode() + b"\0" for argument in arguments))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _reachable(folder: Path) -> bool:
    """Whether every folder down to this one lets other users pass."""
    parts = [part for part in (folder, *folder.parents) if part.exists()]
    return all(part.stat().st_mode & stat.S_IXOTH for part in parts)


def _give_to_nobody(workspace: Path) -> None:
    os.chown(workspace, NOBODY, NOBODY)
    for folder, folders, files in os.walk(workspace):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)


def _gpu_mounts() -> list[str]:
    nodes = [*sorted(Path("/dev").glob("nvidia*"))]
    if not nodes:
        raise EvaluatorFault("no NVIDIA device node in /dev: install the driver or pass the GPU in")
    arguments: list[str] = []
    for node in nodes:
        arguments += ["--dev-bind", str(node), str(node)]
    for folder in GPU_FOLDERS:
        arguments += ["--ro-bind-try", folder, folder]
    return arguments


class OutputRefused(EvaluatorFault):
    """A confined process left no plain file there; where hostile code ran it is that code's."""


class OutputTooLarge(OutputRefused):
    """A confined process left a larger file than its reader takes; the caller tells whose fault."""


def read_output(workspace: Path, name: str, *, limit_bytes: int) -> bytes | None:
    """A regular file that a confined process left; None if it left none.

    Links are not followed: what a candidate wrote must not name a file of the worker.
    Raises OutputRefused if it is a link or another kind of file, OutputTooLarge above the limit.
    """
    path = workspace / name
    if path.parent.resolve() != workspace.resolve() / Path(name).parent:
        raise OutputRefused(f"{name}: its folder leads out of the workspace")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputRefused(
            f"{name}: expected a regular file, found a link: {error.strerror}"
        ) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OutputRefused(
            f"{name}: expected a regular file, found kind {stat.S_IFMT(status.st_mode):o}"
        )
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > limit_bytes:
            raise OutputTooLarge(f"{name}: {status.st_size} bytes, at most {limit_bytes}")
        return file.read(limit_bytes)
