"""Third-party programs, unmodified except for the endpoint."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.contract.kinesis.conftest import records_of

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def aws(service_url, *asked):
    """Run the aws command and return its output."""
    command = [str(Path(sys.executable).parent / "aws"), "--endpoint-url", service_url, "kinesis"]
    done = subprocess.run(
        [*command, *asked],
        env={**os.environ, **CREDENTIALS},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout) if done.stdout else None


def test_aws_cli_puts_and_gets_record(kinesis, service_url, name):
    aws(service_url, "create-stream", "--stream-name", name, "--shard-count", "1")
    data = base64.b64encode(b"hello \xff").decode()
    put = aws(service_url, "put-record", "--stream-name", name, "--partition-key", "k", "--data", data)  # fmt: skip
    where = ("--stream-name", name, "--shard-id", "shardId-000000000000")
    found = aws(service_url, "get-shard-iterator", *where, "--shard-iterator-type", "TRIM_HORIZON")
    told = aws(service_url, "get-records", "--shard-iterator", found["ShardIterator"])

    [record] = records_of(kinesis, name)
    assert told["Records"][0]["SequenceNumber"] == put["SequenceNumber"]
    assert base64.b64decode(told["Records"][0]["Data"]) == record["Data"]
