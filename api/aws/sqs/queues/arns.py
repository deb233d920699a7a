"""The ARNs of one caller's queues."""

from typing import NamedTuple

from api.aws.sqs.queues.urls import queue_arn, queue_of_arn
from storage.domain.names import QueueName


class Arns(NamedTuple):
    """Knows what the queues of a namespace are called beyond it."""

    region: str
    account_id: str
    namespace: str

    def of(self, name: str) -> str:
        """The ARN of a queue."""
        return queue_arn(self.region, self.account_id, name)

    def queue(self, arn: str) -> QueueName | None:
        """The queue that an ARN names; None when it can be none of this namespace's."""
        return queue_of_arn(arn, self.namespace, self.account_id)
