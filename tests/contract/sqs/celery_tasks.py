"""A Celery application whose broker is the service."""

import os
from pathlib import Path

from celery import Celery

app = Celery("celery_tasks", broker=os.environ["BROKER_URL"])
app.conf.broker_transport_options = {
    "is_secure": False,
    "region": "us-east-1",
    "wait_time_seconds": 1,
    "polling_interval": 0.1,
}
app.conf.task_default_queue = "celery-tasks"
app.conf.worker_enable_remote_control = False


@app.task  # type: ignore[untyped-decorator]
def note(number: int) -> None:
    """Leave a trace of having run."""
    Path(os.environ["NOTES"], str(number)).touch()
