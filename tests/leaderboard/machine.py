"""A worker as the site sees it: everything over HTTP, nothing evaluated."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from rest_framework.test import APIClient

from evaluator.records.problem import Problem
from evaluator.records.verdicts import Stage, Verdict
from evaluator.targets import TARGETS
from tests.leaderboard import factories

WORKER = "/api/v1/worker"
BUILD_STAGES = ("policy", "compilation", "sass")


@dataclass(slots=True)
class Machine:
    name: str
    secret: str
    lanes: tuple[str, ...] = ("build", "gpu")
    targets: tuple[str, ...] = tuple(TARGETS)
    client: APIClient = field(default_factory=lambda: APIClient(raise_request_exception=False))

    def __post_init__(self) -> None:
        self.client.credentials(HTTP_AUTHORIZATION=f"Worker {self.secret}")

    def hello(self, **more: Any) -> dict[str, Any]:
        return {"name": self.name, "lanes": self.lanes, "targets": self.targets, **more}

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(f"{WORKER}/{path}", body, format="json")

    def claim(self, attempt: str | None = None) -> Any:
        return self.post("claim", {"worker": self.hello(), "attempt": attempt})

    def order(self, attempt: str | None = None) -> dict[str, Any]:
        answer = self.claim(attempt)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def heartbeat(self, order: dict[str, Any]) -> Any:
        return self.post(f"attempts/{order['attempt']}/heartbeat", {"fence": order["fence"]})

    def stage(self, order: dict[str, Any], result: Any) -> Any:
        value = result if isinstance(result, dict) else result.model_dump(mode="json")
        body = {"fence": order["fence"], "result": value}
        return self.post(f"attempts/{order['attempt']}/stages", body)

    def put(self, order: dict[str, Any], data: bytes, sha256: str | None = None) -> Any:
        return self.client.generic(
            "PUT",
            f"{WORKER}/artifacts/{sha256 or hashlib.sha256(data).hexdigest()}",
            data,
            content_type="application/octet-stream",
            headers={"PTXBoard-Attempt": order["attempt"], "PTXBoard-Fence": order["fence"]},
        )

    def complete(self, order: dict[str, Any], outcome: str = "finished", message: str = "") -> Any:
        target = order["candidate"]["target"]
        body = {
            "fence": order["fence"],
            "outcome": outcome,
            "environment": factories.environment(target).model_dump(mode="json"),
            "message": message,
        }
        return self.post(f"attempts/{order['attempt']}/complete", body)

    def results(self, order: dict[str, Any], **more: Any) -> list[Any]:
        """Passing results of the lane of this order."""
        problem = Problem.model_validate(order["problem"])
        made = factories.stages(problem, order["candidate"]["target"], **more)
        mine = [one for one in made if (one.stage.value in BUILD_STAGES) == _builds(order)]
        return mine

    def run(self, order: dict[str, Any], **more: Any) -> Any:
        """Report every stage of the lane as passed, and complete."""
        return self.report(order, self.results(order, **more))

    def report(self, order: dict[str, Any], results: list[Any]) -> Any:
        for result in results:
            answer = self.stage(order, result)
            assert answer.status_code == 200, answer.content
        answer = self.complete(order)
        assert answer.status_code == 200, answer.content
        return answer

    def fail(self, order: dict[str, Any], stage: str, verdict: str, message: str) -> Any:
        """Report the lane up to `stage`, which gets this verdict."""
        results = factories.failing(self.results(order), Stage(stage), Verdict(verdict), message)
        return self.report(order, results)

    def evaluate(self, **more: Any) -> None:
        """Build and run the oldest submission, every stage passed."""
        self.run(self.order())
        self.run(self.order(), **more)


def _builds(order: dict[str, Any]) -> bool:
    return order["lane"] == "build"
