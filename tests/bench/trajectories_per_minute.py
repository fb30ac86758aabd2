"""How many trajectories a minute a site finishes with 1, 4 and 16 of them at once.

    python -m tests.bench.trajectories_per_minute KERNEL... --target h200 --problem gemm_n7168_k5120

Model calls and evaluations of different trajectories overlap; how much that gains is what this
measures. The model is scripted and answers after `--delay` seconds, turn by turn with the KERNELs.
The site must allow it: PTXBOARD_ENDPOINT_HOSTS=127.0.0.1.
"""

import argparse
import json
import tempfile
import time
import urllib.request
from pathlib import Path

from examples.scripted_endpoint import ScriptedServer

ENDED = ("DONE", "CANCELLED", "FAULTED", "PAUSED")


def main() -> None:
    options = _options()
    print(f"{options.trajectories} trajectories of {len(options.kernels)} turns, ", end="")
    print(f"{options.delay:g} s a call, {options.problem} on {options.target}\n")
    print("at once   seconds   trajectories/min   turns lost")
    for parallel in options.parallel:
        with tempfile.TemporaryDirectory() as folder:
            _script(Path(folder), options, parallel)
            with ScriptedServer(Path(folder), delay_seconds=options.delay) as server:
                server.start()
                run, seconds = _run(options, server.url, parallel)
        rate = 60 * options.trajectories / seconds
        lost = run["used"]["excluded_turns"]
        print(f"{parallel:7}   {seconds:7.1f}   {rate:16.2f}   {lost:10}", flush=True)
        if run["state"] != "DONE":
            raise SystemExit(f"the run ended {run['state']}: {run['reason']}; see {run['url']}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kernels", nargs="+", type=Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--problem", default="gemm_n256_k256")
    parser.add_argument("--site", default="http://127.0.0.1:8000")
    parser.add_argument("--token-file", type=Path, default=Path("var/demo_token"))
    parser.add_argument("--parallel", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--trajectories", type=int, default=16)
    parser.add_argument("--delay", type=float, default=10.0)
    return parser.parse_args()


def _script(folder: Path, options: argparse.Namespace, parallel: int) -> None:
    """Kernels of their own for each run and trajectory: a kernel seen before costs nothing."""
    stamp = time.time_ns()
    for trajectory in range(1, options.trajectories + 1):
        place = folder / "default" / str(trajectory)
        place.mkdir(parents=True)
        for turn, kernel in enumerate(options.kernels):
            tag = "python" if kernel.suffix == ".py" else "cpp"
            mark = "#" if tag == "python" else "//"
            head = f"{mark} {stamp} at {parallel}, trajectory {trajectory}"
            text = f"```{tag}\n{head}\n{kernel.read_text()}\n```\n"
            (place / f"{turn}.md").write_text(text)


def _run(options: argparse.Namespace, url: str, parallel: int) -> tuple[dict, float]:
    """The ended run, and its seconds from the first call to the last verdict."""
    body = {
        "api": "openai-chat",
        "base_url": url,
        "model": f"scripted at {parallel}",
        "problems": [options.problem],
        "target": options.target,
        "variants": ["no-schedule"],
        "trajectories": options.trajectories,
        "turns": len(options.kernels),
        "target_speedup": 1000,
        "max_parallel": parallel,
        "parameters": {"send_labels": True},
    }
    if any(kernel.suffix == ".py" for kernel in options.kernels):
        body["language"] = "triton"
    run = _request(options, f"{options.site}/api/v1/model-runs/", body)["runs"][0]
    while run["state"] not in ENDED:
        time.sleep(1)
        run = _request(options, run["url"])
    return run, run["used"]["seconds"]


def _request(options: argparse.Namespace, url: str, body: dict | None = None) -> dict:
    token = options.token_file.read_text().strip()
    data = json.dumps(body).encode() if body else None
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.loads(answer.read())


if __name__ == "__main__":
    main()
