"""Schemas of the consumers of a queue."""

from typing import Annotated

from pydantic import BaseModel, Field

from api.rest.field_map import Mapped
from api.rest.schema_base import Time
from storage.domain.queues.consumer import ConsumerActivity, ConsumerList, ConsumerProtocol


class QueueConsumerOut(Mapped):
    """A consumer of a queue: a principal that receives from one address with one client.

    Rates are means over the last five minutes, or since its first receive.
    """

    id: Annotated[str, Field(description="Digest of the fields that identify the consumer.")]
    principal: Annotated[
        str, Field(description="Name of its principal; for a webhook, the name of the webhook.")
    ]
    protocol: ConsumerProtocol
    address: Annotated[
        str, Field(description="Address of its connection: behind a proxy, the proxy's.")
    ]
    client: Annotated[str, Field(description="Client program: the start of its `User-Agent`.")]
    receives_per_second: float
    messages_per_second: float
    last_received_at: Annotated[Time, Field(description="Last receive, also of an empty one.")]
    waiting: Annotated[int, Field(description="Receives that wait for a message.")]
    in_flight: Annotated[int, Field(description="Messages received and not yet settled.")]


class QueueConsumerList(BaseModel):
    """The consumers of a queue, most messages first."""

    items: list[QueueConsumerOut]
    in_flight_is_estimate: Annotated[
        bool,
        Field(
            description="More than 5,000 messages are in flight: `in_flight` is extrapolated from those."
        ),
    ]

    @classmethod
    def from_domain(cls, consumers: ConsumerList) -> "QueueConsumerList":
        """Return the list on the wire."""
        items = [_consumer_out(activity) for activity in consumers.consumers]
        return cls(items=items, in_flight_is_estimate=consumers.is_estimate)


def _consumer_out(activity: ConsumerActivity) -> QueueConsumerOut:
    return QueueConsumerOut.mapped(
        activity,
        activity.consumer,
        receives_per_second=round(activity.receives_per_second, 3),
        messages_per_second=round(activity.messages_per_second, 3),
    )
