"""The machine as records tell it: versions that are here, None for what is not."""

import subprocess
import sys

from evaluator.environment import describe_environment, gpu_facts, installed_version
from evaluator.records.evaluation import Environment
from evaluator.sandbox import Sandbox
from evaluator.toolchain import Toolchain


def test_it_tells_the_tools_of_this_machine(bench):
    environment = describe_environment(bench.toolchain, bench.sandbox)
    assert environment.compiler == f"nvcc {bench.toolchain.nvcc.version}"
    assert environment.cuobjdump == bench.toolchain.cuobjdump.version
    assert environment.sandbox == bench.sandbox.description
    assert environment.unsafe_no_sandbox is False
    assert environment.python.startswith("3.")
    assert Environment.from_json(environment.to_json()) == environment


def test_what_is_missing_is_none_and_no_sandbox_is_said():
    environment = describe_environment(Toolchain(), Sandbox(bubblewrap=None))
    assert (environment.compiler, environment.nsight_compute) == (None, None)
    assert environment.unsafe_no_sandbox is True
    assert environment.sandbox.startswith("none ")


def test_the_name_of_the_host_is_not_told(bench):
    environment = describe_environment(bench.toolchain, bench.sandbox)
    assert len(environment.hostname_digest) == 16
    int(environment.hostname_digest, 16)


def test_the_first_installed_name_counts():
    assert installed_version("no-such-distribution", "pydantic").startswith("2.")
    assert installed_version("no-such-distribution") is None


def test_gpu_facts_are_whole_or_none():
    assert len({value is None for value in gpu_facts().values()}) == 1


def test_it_does_not_import_torch_to_know_its_version():
    code = (
        "import sys; from evaluator.bench import Bench; "
        "from evaluator.environment import describe_environment as d; "
        "b = Bench.of_this_machine(); d(b.toolchain, b.sandbox); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
