"""Queue operations over the REST and the SQS protocol."""

import json
from typing import Any, Protocol

import httpx

from tests.chaos.callers import Caller, ItemRefused, Told, nothing
from tests.chaos.history import Kind, Operation, Seen, name_of

ACCOUNT = "000000000000"


class Delivery(Seen, frozen=True):
    """A received message with its receipt handle."""

    handle: str = ""


class QueueProtocol(Protocol):
    """Queue operations; `hidden_s` is the queue's visibility timeout, for the history."""

    async def send(
        self, queue: str, value: str, *, group: str = "", delay_s: float = 0.0
    ) -> Operation: ...

    async def receive(
        self, queue: str, most: int, wait_s: int, hidden_s: float = 0.0
    ) -> Operation: ...

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation: ...


class RestQueues:
    """The REST protocol."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def send(
        self, queue: str, value: str, *, group: str = "", delay_s: float = 0.0
    ) -> Operation:
        message: dict[str, Any] = {"body": value}
        if group:
            message |= {"group": group, "dedup_id": value}
        if delay_s:
            message["delay_seconds"] = delay_s

        def read(told: Any) -> Told:
            sent = told["messages"][0] if "messages" in told else told
            return Told((Seen(value=value, id=sent["id"], offset=sent["offset"], group=group),))

        about: dict[str, Any] = {"values": (value,), "group": group, "promised_s": delay_s}
        path = f"/queues/{queue}/messages"
        return await self._caller.rest(Kind.SEND, queue, "POST", path, read, body=message, **about)

    async def receive(self, queue: str, most: int, wait_s: int, hidden_s: float = 0.0) -> Operation:
        body = {"messages_max": most, "wait_seconds": wait_s}
        path = f"/queues/{name_of(queue)}/receive"
        return await self._caller.rest(
            Kind.RECEIVE, queue, "POST", path, _deliveries, body=body, promised_s=hidden_s
        )

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation:
        """Settle; in this protocol a verdict counts for its delivery only."""
        assert isinstance(delivery, Delivery)
        verdict: dict[str, Any] = {"receipt_handle": delivery.handle, "action": kind.value}
        if kind is Kind.NACK:
            verdict["delay_seconds"] = 0
        body = {"settlements": [verdict]}
        about: dict[str, Any] = {"values": (delivery.value,), "delivery": delivery.receive_count}
        path = f"/queues/{name_of(queue)}/settle"
        return await self._caller.rest(kind, queue, "POST", path, _settled, body=body, **about)


def _deliveries(told: Any) -> Told:
    return Told(tuple(delivery_of(message) for message in told["messages"]))


def delivery_of(told: Any) -> Delivery:
    """A delivery in the format of REST and WebSocket."""
    return Delivery(
        value=told["body"],
        id=told["id"],
        offset=told["offset"],
        group=told.get("group", ""),
        receive_count=told["receive_count"],
        handle=told["receipt_handle"],
    )


def _settled(told: Any) -> Told:
    [result] = told["results"]
    if error := result.get("error"):
        raise ItemRefused(error["code"])
    return Told()


class SqsQueues:
    """The SQS protocol, as unsigned JSON 1.0."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def send(
        self, queue: str, value: str, *, group: str = "", delay_s: float = 0.0
    ) -> Operation:
        """Send; delays are whole seconds in this protocol."""
        fields: dict[str, Any] = {}
        if group:
            fields = {"MessageGroupId": group, "MessageDeduplicationId": value}
        if delay_s:
            fields["DelaySeconds"] = int(delay_s)

        def read(told: Any) -> Told:
            return Told((Seen(value=value, id=told["MessageId"], group=group),))

        about: dict[str, Any] = {
            "values": (value,),
            "group": group,
            "promised_s": float(int(delay_s)),
        }
        request = self._request("SendMessage", queue, MessageBody=value, **fields)
        return await self._caller.call(Kind.SEND, queue, request, read, **about)

    async def receive(self, queue: str, most: int, wait_s: int, hidden_s: float = 0.0) -> Operation:
        request = self._request(
            "ReceiveMessage",
            queue,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait_s,
            MessageSystemAttributeNames=["MessageGroupId", "ApproximateReceiveCount"],
        )
        return await self._caller.call(Kind.RECEIVE, queue, request, _received, promised_s=hidden_s)

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation:
        """ACK deletes, NACK sets visibility to 0.

        In a queue without groups, an old handle still deletes.
        """
        assert isinstance(delivery, Delivery)
        about: dict[str, Any] = {
            "values": (delivery.value,),
            "delivery": delivery.receive_count if delivery.group else 0,
        }
        if kind is Kind.ACK:
            request = self._request("DeleteMessage", queue, ReceiptHandle=delivery.handle)
        else:
            request = self._request(
                "ChangeMessageVisibility",
                queue,
                ReceiptHandle=delivery.handle,
                VisibilityTimeout=0,
            )
        return await self._caller.call(kind, queue, request, nothing, **about)

    def _request(self, action: str, queue: str, **fields: Any) -> httpx.Request:
        url = f"{self._caller.http.base_url}/{ACCOUNT}/{queue}"
        return self._caller.http.build_request(
            "POST",
            "/",
            content=json.dumps({"QueueUrl": url, **fields}),
            headers={
                "content-type": "application/x-amz-json-1.0",
                "x-amz-target": f"AmazonSQS.{action}",
            },
        )


def _received(told: Any) -> Told:
    return Told(
        tuple(
            Delivery(
                value=one["Body"],
                id=one["MessageId"],
                group=one["Attributes"].get("MessageGroupId", ""),
                receive_count=int(one["Attributes"]["ApproximateReceiveCount"]),
                handle=one["ReceiptHandle"],
            )
            for one in told.get("Messages", ())
        )
    )
