"""Third-party programs, unmodified except for the endpoint."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def test_celery_worker_runs_task(service_url, tmp_path):
    broker = f"sqs://test:test@127.0.0.1:{urlsplit(service_url).port}"
    environment = {**os.environ, **CREDENTIALS, "BROKER_URL": broker, "NOTES": str(tmp_path)}
    celery = [sys.executable, "-W", "ignore", "-m", "celery", "-A", "celery_tasks"]
    worker = subprocess.Popen(
        [*celery, "worker", "--pool=solo", "--without-gossip", "--without-mingle"],
        env=environment,
        cwd=HERE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        send = "import celery_tasks; [celery_tasks.note.delay(number) for number in range(3)]"
        subprocess.run([sys.executable, "-c", send], env=environment, cwd=HERE, check=True)
        give_up_at = time.monotonic() + 30
        while len(list(tmp_path.iterdir())) < 3:
            assert time.monotonic() < give_up_at, "the worker did not run its tasks"
            time.sleep(0.05)
    finally:
        worker.terminate()
        worker.wait(30)


def test_aws_cli_sends_message(sqs, service_url, url):
    command = [str(Path(sys.executable).parent / "aws"), "--endpoint-url", service_url, "sqs"]
    asked = ["send-message", "--queue-url", url, "--message-body", "hello"]
    done = subprocess.run(
        [*command, *asked],
        env={**os.environ, **CREDENTIALS},
        capture_output=True,
        text=True,
        check=True,
    )

    [received] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert json.loads(done.stdout)["MessageId"] == received["MessageId"]
