"""Abilities of a machine, each with its fix in words."""

from pathlib import Path

from evaluator import doctor
from evaluator.doctor import State, examine_machine, numbers
from evaluator.records.verdicts import EvaluatorFault, Lane
from evaluator.toolchain import Tool, Toolchain

NO_GPU = dict.fromkeys(("device_name", "device_uuid", "driver"))
A_GPU = {"device_name": "NVIDIA H200", "device_uuid": "GPU-1", "driver": "580.1"}


def by_name(toolchain=None):
    return {ability.name: ability for ability in examine_machine(toolchain)}


def tool(version):
    return Tool(path=Path("/opt/tool"), version=version, root=Path("/opt"))


def test_this_machine_can_build():
    abilities = by_name()
    for name in ("sandbox", "g++", "nvcc", "cuobjdump", "nvdisasm", "tvm-ffi", "torch"):
        assert abilities[name].state is State.OK, abilities[name]
        assert abilities[name].fix == ""


def test_a_missing_tool_comes_with_the_fix():
    nvcc = by_name(Toolchain())["nvcc"]
    assert (nvcc.state, nvcc.seen, nvcc.lacking) == (State.MISSING, "-", True)
    assert nvcc.fix == "install a CUDA 13 toolkit, or `pip install 'ptxboard[toolkit]'`"


def test_an_old_tool_is_told_from_a_missing_one():
    nvcc = by_name(Toolchain(nvcc=tool("12.8.93")))["nvcc"]
    assert (nvcc.state, nvcc.seen) == (State.TOO_OLD, "12.8.93")
    assert nvcc.fix.startswith("version 12.8.93, at least 13.0 is needed")


def test_a_tool_of_the_oldest_version_is_good():
    assert by_name(Toolchain(ncu=tool("2025.3.0.0")))["ncu"].state is State.OK


def test_without_a_gpu_its_tools_are_not_lacking(monkeypatch):
    monkeypatch.setattr(doctor, "gpu_facts", lambda: NO_GPU)
    abilities = by_name(Toolchain())
    assert abilities["gpu"].state is State.MISSING
    assert not any(abilities[name].lacking for name in ("gpu", "ncu", "compute-sanitizer"))


def test_with_a_gpu_its_tools_are_needed(monkeypatch):
    monkeypatch.setattr(doctor, "gpu_facts", lambda: A_GPU)
    abilities = by_name(Toolchain())
    assert abilities["gpu"].seen == "NVIDIA H200, driver 580.1"
    assert abilities["ncu"].lacking
    assert abilities["compute-sanitizer"].lacking


def test_cupti_is_the_file_that_the_host_would_load(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "gpu_facts", lambda: A_GPU)
    monkeypatch.setattr(doctor, "find_cupti", lambda: tmp_path / "libcupti.so.13")
    assert by_name(Toolchain())["cupti"].seen == str(tmp_path / "libcupti.so.13")

    def missing():
        raise EvaluatorFault("libcupti.so.13 not found: pip install it")

    monkeypatch.setattr(doctor, "find_cupti", missing)
    cupti = by_name(Toolchain())["cupti"]
    assert (cupti.lacking, cupti.fix) == (True, "libcupti.so.13 not found: pip install it")


def test_no_sandbox_is_lacking_even_where_it_is_waived(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTXBOARD_UNSAFE_NO_SANDBOX", raising=False)
    assert "apt-get install bubblewrap" in by_name(Toolchain())["sandbox"].fix
    monkeypatch.setenv("PTXBOARD_UNSAFE_NO_SANDBOX", "1")
    waived = by_name(Toolchain())["sandbox"]
    assert (waived.lacking, waived.fix) == (
        True,
        "install bubblewrap: apt-get install bubblewrap",
    )


def test_versions_compare_as_numbers():
    assert numbers("13.0.88") == (13, 0, 88)
    assert numbers("2025.10.1") > numbers("2025.9")
    assert numbers("13.0rc1") == (13,)


def test_each_lane_names_what_it_cannot_do_without(monkeypatch):
    monkeypatch.setattr(doctor, "gpu_facts", lambda: NO_GPU)
    bare = examine_machine(Toolchain())
    assert [told.split()[0] for told in doctor.hindrances(bare, Lane.BUILD, on_gpu=True)] == [
        "g++",
        "nvcc",
        "cuobjdump",
        "nvdisasm",
    ]
    (only,) = doctor.hindrances(bare, Lane.BUILD, on_gpu=False)
    assert only == "g++ is missing: install a C++17 compiler: apt-get install g++"
    lacking = doctor.hindrances(bare, Lane.GPU, on_gpu=True)
    assert [told.split()[0] for told in lacking][:3] == ["gpu", "ncu", "compute-sanitizer"]
    assert doctor.hindrances(bare, Lane.GPU, on_gpu=False) == ()
