"""The doorbell: messages carry an attempt's id only; the database and its leases are the truth.

Why each option: late acknowledgement and visibility timeouts lose or double long jobs, so
messages are acknowledged early and the lease recovers a dead worker's attempt within a minute.
"""

import os

from celery import Celery
from django.conf import settings

from evaluator.broker import BUILD_QUEUE, IO_QUEUE, MODELS_QUEUE, queue, transport_options
from evaluator.targets import TARGETS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

QUEUE_NAMES = (BUILD_QUEUE, *(target.queue for target in TARGETS.values()), IO_QUEUE, MODELS_QUEUE)
LONGEST_TASK_SECONDS = 3600

app = Celery("webapp")
app.conf.update(
    broker_url=settings.PTXBOARD_BROKER_URL,
    broker_transport_options=transport_options(
        settings.PTXBOARD_BROKER_URL, settings.PTXBOARD_BROKER_FOLDER
    ),
    broker_connection_retry_on_startup=True,
    task_queues=[queue(name) for name in QUEUE_NAMES],
    task_default_queue=IO_QUEUE,
    task_default_exchange=IO_QUEUE,
    task_default_routing_key=IO_QUEUE,
    task_create_missing_queues=False,  # a typo must not make a queue that nobody reads
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    task_acks_late=False,
    task_reject_on_worker_lost=False,
    task_time_limit=LONGEST_TASK_SECONDS + 300,
    task_soft_time_limit=LONGEST_TASK_SECONDS + 120,
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=settings.PTXBOARD_BROKER_URL.startswith("redis"),
    worker_cancel_long_running_tasks_on_connection_loss=True,
    worker_soft_shutdown_timeout=30,
    worker_hijack_root_logger=False,
    timezone="UTC",
    # in memory: duties run every few seconds, and a schedule file that was cut short kills beat
    beat_scheduler="celery.beat:Scheduler",
    beat_schedule={
        "reconcile": {
            "task": "leaderboard.reconcile",
            "schedule": 10.0,
            "options": {"queue": IO_QUEUE, "expires": 30},
        },
        "reap": {
            "task": "leaderboard.reap",
            "schedule": 10.0,
            "options": {"queue": IO_QUEUE, "expires": 30},
        },
    },
)
app.autodiscover_tasks(["leaderboard"])
