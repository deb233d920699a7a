"""Third-party programs, unmodified except for the endpoint."""

import json
import os
import subprocess
import sys
from pathlib import Path

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


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
