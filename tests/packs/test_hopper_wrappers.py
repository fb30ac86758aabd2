"""The Hopper pack's wrappers: compiled for sm_90a, found in the machine code, executed on an H200.

The executed part is a record (tests/packs/evidence/hopper_h200.jsonl): it must be of the code as it
is now, comments apart. `-m gpu` runs the probes anew. Not covered: speed, and whole schedules.
"""

import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from packs.pack import ROOT, Level, find_pack
from tests.packs import lint
from tests.packs.hopper_record import RECORD, code_digest
from tests.packs.machine_code import compile_cubin, machine_code

PACK = find_pack("hopper")
PROBES = ROOT / "hopper" / "probes"
ROWS = tomllib.loads((PROBES / "probes.toml").read_text())["wrapper"]
HEADERS = [part.path for part in PACK.parts_of(Level.FUNCTIONS)]
NO_INSTRUCTION = {"host", "integer arithmetic", "orders the compiler only"}


@pytest.fixture(scope="module")
def kernels_of(tmp_path_factory):
    """Compiles a program once and gives its machine code by kernel."""

    @cache
    def compiled(program: str) -> dict[str, list[str]]:
        out = tmp_path_factory.mktemp("cubins")
        return machine_code(compile_cubin(PROBES / program, out, arch="90a"))

    return compiled


@pytest.fixture(scope="module")
def executed():
    header, *lines = map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
    return header, lines


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_it_compiles_each_header_alone(path, tmp_path):
    unit = tmp_path / "alone.cu"
    unit.write_text(f'#include "{path}"\n')
    assert compile_cubin(unit, tmp_path, arch="90a").exists()


def test_it_compiles_all_headers_together_as_a_model_would_paste_them(tmp_path):
    unit = tmp_path / "all.cu"
    unit.write_text("".join(path.read_text(encoding="utf-8") for path in HEADERS))
    assert compile_cubin(unit, tmp_path, arch="90a").exists()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}-{row['program'][:-3]}")
def test_it_finds_a_wrapper_in_the_machine_code_of_its_probe(kernels_of, row):
    kernels = kernels_of(row["program"])
    called = re.compile(rf"_Z\d+{row['kernel']}")
    texts = [text for name, rows in kernels.items() if called.match(name) for text in rows]
    text = "\n".join(texts)
    if "sass" in row:
        assert [pattern for pattern in row["sass"] if not re.search(pattern, text)] == []
    else:
        assert row["no_sass"] in NO_INSTRUCTION or row["name"] == "fence_mbarrier_init"
    assert text or row["no_sass"] == "host"


def test_it_has_a_probe_for_every_wrapper_and_no_other():
    in_headers = {
        path.name: set(lint.DEFINITION.findall(lint.COMMENT.sub("", path.read_text())))
        for path in HEADERS
    }
    in_headers["mbarrier.cuh"] ^= {"Ring", "advance"}  # the type stands for its method
    proved = {name: {row["name"] for row in ROWS if row["header"] == name} for name in in_headers}
    assert proved == in_headers
    assert sum(map(len, proved.values())) > 80


def test_it_was_executed_on_an_h200_as_the_code_is_now(executed):
    header, _ = executed
    assert header["device"]["name"] == "NVIDIA H200"
    assert header["templates_sha256"] == code_digest("templates")


def test_every_probe_that_was_executed_gave_the_expected_numbers(executed):
    _, lines = executed
    assert [line for line in lines if not line["ok"]] == []
    assert len(lines) > 90


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}-{row['program'][:-3]}")
def test_it_executed_the_probe_of_a_wrapper(executed, row):
    _, lines = executed
    probes = {line["probe"] for line in lines}
    assert any(probe.startswith(row["kernel"]) for probe in probes), row["kernel"]
    assert any(row["name"] in line["wrappers"] for line in lines), row["name"]


@pytest.mark.gpu
def test_the_probes_pass_on_this_machines_gpu(tmp_path):
    out = tmp_path / "out.jsonl"
    done = subprocess.run(
        [PROBES / "run.sh", out], capture_output=True, text=True, timeout=300, cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr
    assert all(json.loads(line)["ok"] for line in out.read_text().splitlines())
