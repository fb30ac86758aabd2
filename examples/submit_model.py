"""Hand in a model endpoint over REST and wait for its run; only the standard library is needed.

    python examples/submit_model.py --base-url URL --model NAME --problem NAME --target TARGET \\
        [--api openai-chat] [--key-file FILE] [--variants 3 names] [--trajectories 4] [--turns 8] \\
        [--site URL] [--token-file FILE] [--wait SECONDS] [--id-file FILE]

Prints a line per trajectory with the state of each turn, then correctness, best speedup and Fast_p.
The key is read from a file, so that it is in no shell history; it is sent once and never shown.
"""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

ENDED = {"DONE", "CANCELLED", "FAULTED", "PAUSED"}


def call(options: argparse.Namespace, method: str, path: str, body: Any = None) -> Any:
    url = path if path.startswith("http") else options.site.rstrip("/") + path
    request = urllib.request.Request(url, method=method)
    request.add_header("Authorization", f"Token {Path(options.token_file).read_text().strip()}")
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", str(uuid.uuid4()))
    try:
        with urllib.request.urlopen(request, data, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from None
    except urllib.error.URLError as error:
        raise ConnectionError(f"{options.site} cannot be reached: {error.reason}") from None


def body_of(options: argparse.Namespace) -> dict[str, Any]:
    key = Path(options.key_file).read_text().strip() if options.key_file else ""
    return {
        "name": options.name or options.model,
        "api": options.api,
        "base_url": options.base_url,
        "model": options.model,
        "key": key,
        "parameters": json.loads(options.parameters),
        "problems": [options.problem],
        "target": options.target,
        "variants": options.variants,
        "trajectories": options.trajectories,
        "turns": options.turns,
        "max_parallel": options.max_parallel,
    }


def wait(options: argparse.Namespace, url: str) -> dict[str, Any]:
    """The run when it has ended or the time is up. It goes on while the site is away, so do we."""
    deadline = time.monotonic() + options.wait
    while True:
        try:
            run: dict[str, Any] = call(options, "GET", url)
            if run["state"] in ENDED or time.monotonic() > deadline:
                return run
        except ConnectionError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{error}; the run is {url}") from None
            print(f"{error}; trying again", file=sys.stderr)
        time.sleep(1.0)


def report(run: dict[str, Any]) -> None:
    for row in run["trajectories"]:
        tiles = [_tile(turn) for turn in row["turns"]]
        print(f"{row['variant']:22} {row['number']} {row['ending'] or row['state']:12}", *tiles)
    print(json.dumps(run["turn_counts"]))
    print(json.dumps(run["metrics"], indent=1))
    print(f"{run['state']} {run['reason']} {run['html_url']}")


def _tile(turn: dict[str, Any]) -> str:
    speed = f"={turn['speedup']:.3f}" if turn["speedup"] else ""
    return f"{turn['verdict'] or turn['state']}{speed}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--problem", required=True)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--name", default="")
    parser.add_argument("--api", default="openai-chat")
    parser.add_argument("--key-file")
    parser.add_argument("--parameters", default="{}", help="JSON, as the API takes it")
    parser.add_argument("--variants", nargs="*", default=[])
    parser.add_argument("--trajectories", type=int, default=4)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--max-parallel", type=int, default=4)
    parser.add_argument("--site", default="http://127.0.0.1:8000")
    parser.add_argument("--token-file", default="var/demo_token")
    parser.add_argument("--wait", type=float, default=3600, help="seconds")
    parser.add_argument("--id-file", help="where to write the run's id")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        made = call(options, "POST", "/api/v1/model-runs/", body_of(options))
    except ConnectionError as error:
        raise SystemExit(str(error)) from None
    (run,) = made["runs"]
    print(f"run {run['id']}: at most {made['calls_at_most']} calls", flush=True)
    if options.id_file:
        Path(options.id_file).write_text(run["id"])
    run = wait(options, run["url"])
    report(run)
    return 0 if run["state"] == "DONE" else 1


if __name__ == "__main__":
    sys.exit(main())
