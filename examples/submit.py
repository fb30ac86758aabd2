"""Submit kernels over REST and wait for their verdicts; only the standard library is needed.

    python examples/submit.py KERNEL... --problem NAME --target TARGET --site URL --token-file FILE
    python examples/submit.py --candidates tests/candidates --target h200 --site URL ...

With --candidates, each folder's expect.toml says problem, language, binding and the verdict that
is expected; the exit code is 1 if one comes out differently.
"""

import argparse
import json
import sys
import time
import tomllib
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

TERMINAL = {"done", "faulted", "cancelled"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One submission to make; `expected` is empty where nothing is expected."""

    name: str
    problem: str
    target: str
    language: str
    binding: str
    sources: list[dict[str, str]]
    expected: tuple[str, ...] = ()
    instructions: str | None = None


class Site:
    def __init__(self, url: str, token: str):
        self.url = url.rstrip("/")
        self.token = token

    def call(self, method: str, path: str, body: dict | None = None) -> dict:
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        request.add_header("Authorization", f"Token {self.token}")
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
            request.add_header("Idempotency-Key", str(uuid.uuid4()))
        try:
            with urllib.request.urlopen(request, data, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.loads(error.read() or b"{}")
            if error.code == 409 and "duplicate_of" in problem:
                return self.call("GET", f"/api/v1/submissions/{problem['duplicate_of']['id']}/")
            raise SystemExit(
                f"{method} {path}: {error.code} {json.dumps(problem, indent=2)}"
            ) from None

    def submit(self, entry: Entry) -> dict:
        body = {
            "name": entry.name,
            "problem": entry.problem,
            "target": entry.target,
            "language": entry.language,
            "binding": entry.binding,
            "sources": entry.sources,
        }
        return self.call("POST", "/api/v1/submissions/", body)

    def wait(self, identifier: str, seconds: float) -> dict:
        deadline = time.monotonic() + seconds
        while True:
            answer = self.call("GET", f"/api/v1/submissions/{identifier}/")
            if answer["state"].lower() in TERMINAL or time.monotonic() > deadline:
                return answer
            time.sleep(0.5)


def main() -> int:
    options = arguments()
    token = Path(options.token_file).read_text().strip()
    site = Site(options.site, token)
    entries = from_folders(options) if options.candidates else from_files(options)
    made = [(entry, site.submit(entry)) for entry in entries]
    wrong = 0
    for entry, answer in made:
        answer = site.wait(answer["id"], options.wait)
        wrong += report(entry, answer)
    if options.candidates:
        print(f"{len(made) - wrong} of {len(made)} as expected")
    return 1 if wrong else 0


def report(entry: Entry, answer: dict) -> int:
    seen = answer["verdict"] or answer["state"]
    instructions = (answer.get("target_instructions") or {}).get("status")
    score = answer.get("score") or {}
    speed = f"{score['speedup']:.3f}x" if score else ""
    ok = (not entry.expected or seen in entry.expected) and entry.instructions in (
        None,
        instructions,
    )
    print(
        f"{'  ' if ok else '! '}{entry.name:28} {entry.target:5} {seen:20} {speed:8} "
        f"{instructions or '':13} {answer.get('message', '')[:100]}",
        flush=True,
    )
    if not ok:
        wanted = " or ".join(entry.expected)
        print(f"  expected {wanted} {entry.instructions or ''}: {answer['html_url']}")
    return 0 if ok else 1


def from_files(options: argparse.Namespace) -> list[Entry]:
    return [
        Entry(
            name=Path(file).stem,
            problem=options.problem,
            target=options.target,
            language="cpp" if options.target == "host" else "cuda",
            binding=options.binding,
            sources=[{"path": Path(file).name, "content": Path(file).read_text()}],
        )
        for file in options.kernels
    ]


def from_folders(options: argparse.Namespace) -> list[Entry]:
    entries = []
    for expect in sorted(Path(options.candidates).glob("*/expect.toml")):
        known = tomllib.loads(expect.read_text())
        if known["target"] != options.target or (
            options.only and expect.parent.name not in options.only
        ):
            continue
        files = sorted(file for file in expect.parent.rglob("*") if file.name != "expect.toml")
        entries.append(
            Entry(
                name=expect.parent.name,
                problem=known["problem"],
                target=known["target"],
                language=known["language"],
                binding=known.get("binding", "c"),
                sources=[
                    {"path": str(file.relative_to(expect.parent)), "content": file.read_text()}
                    for file in files
                    if file.is_file()
                ],
                expected=(known["verdict"], *known.get("also_verdicts", ())),
                instructions=known.get("target_instructions"),
            )
        )
    return entries


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--problem")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--binding", default="c")
    parser.add_argument("--candidates", help="a folder of folders with expect.toml")
    parser.add_argument("--only", nargs="*", help="names of folders to take")
    parser.add_argument("--site", default="http://127.0.0.1:8000")
    parser.add_argument("--token-file", default="var/demo_token")
    parser.add_argument("--wait", type=float, default=600, help="seconds per verdict")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
