"""Real tools, found once; builds are shared by the tests of a session through one cache."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.targets import find_target
from evaluator.work import Work

EVIDENCE = Path(__file__).parent.parent / "evidence"
CANDIDATES = Path(__file__).parent.parent / "candidates"

MakeWork = Callable[..., Work]


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Bench:
    """This machine, with a build cache that lives as long as the session."""
    return Bench.of_this_machine(cache=tmp_path_factory.mktemp("builds"))


@pytest.fixture
def make_work(tmp_path) -> MakeWork:
    """A submission from its text; further files by name, the entry file under `entry`."""

    def make(
        text: str,
        *,
        target: str = "h200",
        problem: str = "gemm_n256_k256",
        binding: str = "c",
        entry: str | None = None,
        files: dict[str, str] | None = None,
    ) -> Work:
        first = find_target(target).languages[0]
        name = entry or ("kernel.cu" if first == "cuda" else "kernel.cpp")
        language = "triton" if name.endswith(".py") else first
        contents = {name: text, **(files or {})}
        candidate = Candidate(
            problem=problem,
            target=target,
            language=language,
            binding=binding,
            sources=tuple(Source(path=path, content=body) for path, body in contents.items()),
            entry_file=name,
        )
        return Work(
            candidate=candidate,
            problem=find_problem(problem),
            target=find_target(target),
            folder=tmp_path,
        )

    return make


@pytest.fixture
def recorded() -> Callable[[str], dict]:
    """`recorded("sass/hopper_families.json")`: header and output as they were recorded."""
    return lambda name: json.loads((EVIDENCE / name).read_text())


def trick(name: str) -> str:
    return (CANDIDATES / name / "kernel.cu").read_text()
