"""One judge of the H200 for the whole session; these tests run only with `-m gpu`."""

from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.sandbox import Sandbox
from evaluator.targets import find_target
from evaluator.toolchain import Toolchain

CALL_SECONDS = 10.0
SANITIZER_SECONDS = 20.0


@pytest.fixture(scope="session")
def gpu_bench(tmp_path_factory) -> Bench:
    from evaluator.judge.judge import Judge

    sandbox, toolchain = Sandbox.find(), Toolchain.find()
    judge = Judge(
        find_target("h200"),
        sandbox,
        toolchain,
        call_seconds=CALL_SECONDS,
        sanitizer_seconds=SANITIZER_SECONDS,
    )
    cache: Path = tmp_path_factory.mktemp("builds")
    return Bench(sandbox=sandbox, toolchain=toolchain, cache=cache, device=judge)
