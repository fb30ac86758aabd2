"""What a host sees: vendors' libraries are hidden from it, unless the problem allows them."""

import pytest

from evaluator.judge import confinement
from evaluator.judge.confinement import own_gpu, surroundings, vendor_libraries


@pytest.fixture
def toolkit(tmp_path):
    """A toolkit's folder: a library, the links to it, a static one, and one of nobody's concern."""
    folder = tmp_path / "toolkit" / "lib64"
    folder.mkdir(parents=True)
    for name in ("libcublas.so.13.1", "libcublas_static.a", "libcupti.so.13", "libcudnn.so.9"):
        (folder / name).touch()
    (folder / "libcublas.so").symlink_to("libcublas.so.13.1")
    return folder


def test_files_are_found_and_links_to_them_are_not(toolkit):
    names = {path.name for path in vendor_libraries(toolkit.parent)}
    assert names == {"libcublas.so.13.1", "libcudnn.so.9"}


def test_what_the_problem_allows_is_not_hidden(toolkit, make_work, monkeypatch):
    monkeypatch.setattr(confinement, "USR", toolkit)
    work = make_work("// nothing", target="host")
    assert set(surroundings(work).hidden) >= {toolkit / "libcublas.so.13.1"}
    allowing = work.problem.model_copy(update={"allowed_libraries": ("cublas",)})
    from dataclasses import replace

    hidden = surroundings(replace(work, problem=allowing)).hidden
    assert toolkit / "libcublas.so.13.1" not in hidden
    assert toolkit / "libcudnn.so.9" in hidden


@pytest.mark.parametrize(
    ("judge", "host"),
    [
        ({}, {"CUDA_VISIBLE_DEVICES": "0"}),
        ({"CUDA_VISIBLE_DEVICES": "2,3"}, {"CUDA_VISIBLE_DEVICES": "2"}),
        (
            {"CUDA_VISIBLE_DEVICES": "GPU-8f1c", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            {"CUDA_VISIBLE_DEVICES": "GPU-8f1c", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        ),
    ],
)
def test_a_host_sees_the_judges_gpu_and_no_other(judge, host, make_work, monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in judge.items():
        monkeypatch.setenv(name, value)
    assert own_gpu() == host
    inside = surroundings(make_work("// nothing", target="h200")).environment
    assert host.items() <= inside.items()
    assert "CUDA_VISIBLE_DEVICES" not in surroundings(make_work("//", target="host")).environment
