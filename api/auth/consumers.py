"""Identity of the consumer of a queue that makes a request."""

from api.auth.audit import Client, address_of
from api.types import RequestHeaders
from storage.domain.access.permissions import Principal
from storage.domain.queues.consumer import ConsumerProtocol, QueueConsumer, queue_consumer


def consumer_of(
    principal: Principal, protocol: ConsumerProtocol, client: Client, headers: RequestHeaders
) -> QueueConsumer:
    """Return the consumer that a request comes from."""
    program = headers.get(b"user-agent", b"")
    return queue_consumer(principal.name, protocol, address_of(client), program)
