"""Queue with partitions, worked by the unmodified sqs-consumer for Node.js."""

from pathlib import Path
from typing import Any

import pytest

from tests.javascript import install, steps_of

HERE = Path(__file__).parent / "javascript"
COUNT = 100


@pytest.mark.parametrize("partitions", [1, 4])
def test_sqs_consumer_handles_each_message(
    sqs: Any, client: Any, service_url: str, name: str, partitions: int
):
    client.put(f"/v1/queues/{name}", json={"partitions": partitions}).raise_for_status()
    url = str(sqs.get_queue_url(QueueName=name)["QueueUrl"])
    for start in range(0, COUNT, 10):
        numbers = map(str, range(start, start + 10))
        entries = [{"Id": number, "MessageBody": number} for number in numbers]
        assert "Failed" not in sqs.send_message_batch(QueueUrl=url, Entries=entries)
    install(HERE)

    steps = steps_of(HERE, "node", "consume.mjs", service_url, url, str(COUNT))["consumed"]

    assert steps["errors"] == []
    assert steps["handled"] == {str(number): 1 for number in range(COUNT)}
    assert steps["failed"] == len(range(0, COUNT, 7))
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    kinds = ("", "NotVisible", "Delayed")
    assert [answer[f"ApproximateNumberOfMessages{kind}"] for kind in kinds] == ["0", "0", "0"]
    stats = client.get(f"/v1/queues/{name}/stats").json()
    assert (stats["ready"], stats["in_flight"], stats["acknowledged"]) == (0, 0, COUNT)
