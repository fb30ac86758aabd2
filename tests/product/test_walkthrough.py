"""A kernel goes in by REST, a verdict comes out on the board: real processes, nothing faked."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.product.conftest import Product, running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.serial]

HOST = ("--problem", "gemm_n256_k256", "--target", "host")
HOST_TRICKS = (
    "host_blocked",
    "host_cached",
    "host_exit",
    "host_infinite_loop",
    "host_input_writer",
    "host_out_of_bounds",
    "host_prints_passed",
    "host_segfault",
    "host_wrong",
)


def board(product: Product, path: str = "host/gemm_n256_k256") -> dict:
    return json.loads(product.get(f"/api/v1/boards/{path}/"))


def submission(product: Product, name: str) -> dict:
    listed = json.loads(product.get("/api/v1/submissions/"))["results"]
    identifier = next(row["id"] for row in listed if row["name"] == name)
    return json.loads(product.get(f"/api/v1/submissions/{identifier}/"))


def walk(product: Product) -> None:
    """One good and one wrong kernel for `host`, through both workers to the board."""
    made = product.submit("examples/kernels/gemm_host.cpp", *HOST)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "PASSED" in made.stdout
    tricks = ("--candidates", "tests/candidates", "--target", "host", "--only", "host_wrong")
    made = product.submit(*tricks)
    assert made.returncode == 0, made.stdout + made.stderr
    rows = {row["name"]: row for row in board(product)["rows"]}
    assert "host_wrong" not in rows
    assert rows["gemm_host"]["rank"] >= 1
    assert rows["gemm_host"]["score"]["speedup"] > 0


def test_a_host_kernel_reaches_the_board_on_the_embedded_default(product):
    walk(product)
    seen = submission(product, "gemm_host")
    assert [stage["state"] for stage in seen["stages"] if stage["state"] != "skipped"] == [
        "passed"
    ] * 4
    assert seen["environment"]["sandbox"].startswith("bubblewrap")


def test_host_tricks_get_the_verdict_that_their_folders_expect(product):
    """One of each verdict; `ptxboard corpus --target host` runs all of them, without a site."""
    made = product.submit(
        *("--candidates", "tests/candidates", "--target", "host", "--only", *HOST_TRICKS)
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert f"{len(HOST_TRICKS)} of {len(HOST_TRICKS)} as expected" in made.stdout


def test_an_h200_kernel_gets_its_build_verdict_and_then_waits(product):
    made = product.submit(
        "examples/kernels/gemm_wgmma_tma.cu",
        *("--problem", "gemm_n7168_k5120", "--target", "h200", "--wait", "1"),
    )
    assert made.returncode == 0, made.stdout + made.stderr

    def built() -> bool:
        stages = submission(product, "gemm_wgmma_tma")["stages"]
        return [stage["verdict"] for stage in stages[:3]] == ["PASSED"] * 3

    wait_for(built, 90, "policy, compilation and sass of gemm_wgmma_tma")
    seen = submission(product, "gemm_wgmma_tma")
    assert seen["verdict"] is None
    assert seen["queue"]["workers_online"] == 0
    families = {match["family"] for match in seen["stages"][2]["evidence"]["matches"]}
    assert {"GMMA", "UTMALDG"} <= families
    assert "no H200 worker is online" in product.get(f"/submissions/{seen['id']}/")


def test_it_stops_cleanly_and_runs_again_with_what_it_had(tmp_path):
    var = tmp_path / "var"
    with running(var) as first:
        made = first.submit("examples/kernels/gemm_host.cpp", *HOST)
        assert made.returncode == 0, made.stdout + made.stderr
    assert first.process.returncode == 0, first.output.read_text()
    assert processes_of(var) == []
    with running(var) as second:
        assert [row["name"] for row in board(second)["rows"]] == ["gemm_host"]


def test_it_runs_on_redis_and_postgresql_and_survives_a_flushed_broker(
    tmp_path, redis_url, postgresql_url
):
    environment = {
        "PTXBOARD_DATABASE_URL": postgresql_url,
        "PTXBOARD_BROKER_URL": redis_url,
        "PTXBOARD_SECRET_KEY": "only-for-this-test-" * 4,
    }
    with running(tmp_path / "var", environment) as product:
        walk(product)
        port = redis_url.split(":")[2].split("/")[0]
        stop = product.submit("examples/kernels/gemm_host_naive.cpp", *HOST, "--wait", "0")
        assert stop.returncode == 0, stop.stdout + stop.stderr
        flushed = subprocess.run(["redis-cli", "-p", port, "flushall"], capture_output=True)
        assert flushed.stdout.strip() == b"OK"
        wait_for(
            lambda: submission(product, "gemm_host_naive")["verdict"] == "PASSED",
            120,
            "a verdict although the broker forgot the message",
        )
        assert len(board(product)["rows"]) == 2


def processes_of(var: Path) -> list[str]:
    """Command lines of processes that still name the folder, after a moment to end."""
    for _ in range(50):
        left = [line for line in _environments() if str(var) in line]
        if not left:
            return []
        time.sleep(0.1)
    return left


def _environments() -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes().decode(errors="replace")
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        found.append(f"{command} {environ}")
    return found
