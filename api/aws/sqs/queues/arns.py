"""The ARNs of one caller's queues."""

from typing import NamedTuple

from api.aws.sqs.queues.urls import queue_arn, queue_of_arn
from storage.domain.names import QueueName


class Arns(NamedTuple):
    """ARNs of the queues of a namespace."""

    region: str
    account_id: str
    namespace: str

    def of(self, name: str) -> str:
        """Return the ARN of a queue."""
        return queue_arn(self.region, self.account_id, name)

    def queue(self, arn: str) -> QueueName | None:
        """Return the queue that an ARN names; None when it cannot be in this namespace."""
        return queue_of_arn(arn, self.namespace, self.account_id)
