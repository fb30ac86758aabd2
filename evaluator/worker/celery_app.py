"""Celery on the worker's side: a message names an attempt, the claim decides everything else.

Tasks are acknowledged early and keep no results: the lease in the database recovers a lost
worker in a minute, where a broker's visibility timeout loses or doubles long jobs.
"""

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import worker_shutting_down

from evaluator.broker import EVALUATE_TASK, queue, transport_options


def worker_app(
    *,
    broker_url: str,
    broker_folder: Path,
    queues: tuple[str, ...],
    evaluate: Callable[[str], bool],
    stopping: threading.Event,
) -> Celery:
    """The Celery application of one worker process, consuming the named queues."""
    # A root worker is common in containers; a message here is JSON and names an attempt only.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    if broker_url == "filesystem://":
        broker_url = "filesystem://localhost//"  # without a host kombu warns at every connection
    app = Celery("ptxboard-worker", broker=broker_url)
    app.conf.update(
        accept_content=["json"],
        broker_connection_retry_on_startup=True,
        broker_transport_options=transport_options(broker_url, broker_folder),
        task_acks_late=False,
        task_create_missing_queues=False,
        task_default_queue=queues[0],
        task_default_exchange=queues[0],
        task_default_routing_key=queues[0],
        task_ignore_result=True,
        task_queues=[queue(name) for name in queues],
        task_serializer="json",
        worker_disable_prefetch=broker_url.startswith("redis"),
        worker_hijack_root_logger=False,
        worker_prefetch_multiplier=1,
    )

    def run(attempt: str) -> None:
        evaluate(attempt)

    app.task(name=EVALUATE_TASK)(run)

    def stop(**_: object) -> None:
        stopping.set()

    worker_shutting_down.connect(stop, weak=False)
    return app
