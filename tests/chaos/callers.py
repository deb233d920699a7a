"""Clients that write down what they asked and what they were told: the REST door and the SQS door, with the same verbs."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import httpx

from tests.chaos.checker import UNANSWERED
from tests.chaos.history import History, Kind, Operation, Outcome, Seen

ANSWER_S = 8.0
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
ACCOUNT = "000000000000"
NOT_DONE = 503
"""Nothing happened, as with every status below 500."""
UNKNOWN_WORDS = ("may have taken effect", "is stopping")

Read = Callable[[Any], tuple[Seen, ...]]


class Delivery(Seen, frozen=True):
    """A message that was received, and what settles it."""

    handle: str = ""


class QueueDoor(Protocol):
    """A queue's verbs, through one of the doors."""

    async def send(self, queue: str, value: str, *, group: str = "") -> Operation: ...

    async def receive(self, queue: str, most: int, wait_s: int) -> Operation: ...

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation: ...


class Caller:
    """One client: calls, outcomes, history."""

    def __init__(self, name: str, history: History, http: httpx.AsyncClient) -> None:
        self.name = name
        self.history = history
        self.http = http

    async def call(
        self,
        kind: Kind,
        log: str,
        request: httpx.Request,
        read: Read,
        *,
        values: tuple[str, ...] = (),
        group: str = "",
    ) -> Operation:
        """Ask, and write down how it ended. A body that is not what was promised raises: that is our own mistake."""
        invoked = self.history.now()
        outcome, status, code = Outcome.UNKNOWN, 0, ""
        seen: tuple[Seen, ...] = ()
        try:
            answer = await self.http.send(request)
        except NEVER_SENT:
            outcome = Outcome.FAIL
        except httpx.HTTPError:
            pass
        else:
            status = answer.status_code
            outcome, code = _outcome(answer)
            if outcome is Outcome.OK:
                try:
                    seen = read(answer.json() if answer.content else {})
                except ItemRefused as refused:
                    outcome, code = Outcome.FAIL, refused.code
        operation = Operation(
            client=self.name,
            kind=kind,
            log=log,
            invoked=invoked,
            ended=self.history.now(),
            outcome=outcome,
            status=status,
            code=code,
            values=values,
            group=group,
            seen=seen,
        )
        self.history.add(operation)
        return operation

    async def rest(
        self,
        kind: Kind,
        log: str,
        method: str,
        path: str,
        read: Read,
        *,
        body: Any = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        values: tuple[str, ...] = (),
        group: str = "",
    ) -> Operation:
        """A call of the REST door."""
        request = self.http.build_request(
            method, f"/v1{path}", json=body, params=query, headers=headers
        )
        return await self.call(kind, log, request, read, values=values, group=group)


class ItemRefused(Exception):
    """The call went well, and its one item did not."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def nothing(_: Any) -> tuple[Seen, ...]:
    """The answer does not matter."""
    return ()


def _outcome(answer: httpx.Response) -> tuple[Outcome, str]:
    if answer.is_success:
        return Outcome.OK, ""
    code = _code(answer)
    refused = answer.status_code < 500 or answer.status_code == NOT_DONE
    return (Outcome.FAIL if refused else Outcome.UNKNOWN), code


def _code(answer: httpx.Response) -> str:
    """What went wrong in a word. The SQS door has one word for unknown outcomes and for faults; its text tells them apart."""
    with suppress(ValueError):
        said = answer.json()
        if any(words in said.get("message", "") for words in UNKNOWN_WORDS):
            return UNANSWERED
        return str(said.get("code") or said.get("__type", "").rpartition("#")[2])
    return ""


class RestQueues:
    """The REST door."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def send(self, queue: str, value: str, *, group: str = "") -> Operation:
        message = {"body": value, **({"group": group, "dedup_id": value} if group else {})}

        def read(told: Any) -> tuple[Seen, ...]:
            sent = told["messages"][0] if "messages" in told else told
            return (Seen(value=value, id=sent["id"], offset=sent["offset"], group=group),)

        path = f"/queues/{queue}/messages"
        return await self._caller.rest(
            Kind.SEND, queue, "POST", path, read, body=message, values=(value,), group=group
        )

    async def receive(self, queue: str, most: int, wait_s: int) -> Operation:
        body = {"messages_max": most, "wait_seconds": wait_s}
        path = f"/queues/{queue}/receive"
        return await self._caller.rest(Kind.RECEIVE, queue, "POST", path, _deliveries, body=body)

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation:
        assert isinstance(delivery, Delivery)
        verdict: dict[str, Any] = {"receipt_handle": delivery.handle, "action": kind.value}
        if kind is Kind.NACK:
            verdict["delay_seconds"] = 0
        body = {"settlements": [verdict]}
        path = f"/queues/{queue}/settle"
        return await self._caller.rest(
            kind, queue, "POST", path, _settled, body=body, values=(delivery.value,)
        )


def _deliveries(told: Any) -> tuple[Seen, ...]:
    return tuple(
        Delivery(
            value=one["body"],
            id=one["id"],
            offset=one["offset"],
            group=one.get("group", ""),
            handle=one["receipt_handle"],
        )
        for one in told["messages"]
    )


def _settled(told: Any) -> tuple[Seen, ...]:
    [result] = told["results"]
    if error := result.get("error"):
        raise ItemRefused(error["code"])
    return ()


class SqsQueues:
    """The SQS door, as JSON 1.0, unsigned."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def send(self, queue: str, value: str, *, group: str = "") -> Operation:
        fields = {"MessageGroupId": group, "MessageDeduplicationId": value} if group else {}

        def read(told: Any) -> tuple[Seen, ...]:
            return (Seen(value=value, id=told["MessageId"], group=group),)

        request = self._request("SendMessage", queue, MessageBody=value, **fields)
        return await self._caller.call(
            Kind.SEND, queue, request, read, values=(value,), group=group
        )

    async def receive(self, queue: str, most: int, wait_s: int) -> Operation:
        request = self._request(
            "ReceiveMessage",
            queue,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait_s,
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        return await self._caller.call(Kind.RECEIVE, queue, request, _received)

    async def settle(self, queue: str, delivery: Seen, kind: Kind) -> Operation:
        """ACK deletes; NACK makes it visible at once."""
        assert isinstance(delivery, Delivery)
        if kind is Kind.ACK:
            request = self._request("DeleteMessage", queue, ReceiptHandle=delivery.handle)
        else:
            request = self._request(
                "ChangeMessageVisibility",
                queue,
                ReceiptHandle=delivery.handle,
                VisibilityTimeout=0,
            )
        return await self._caller.call(kind, queue, request, nothing, values=(delivery.value,))

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


def _received(told: Any) -> tuple[Seen, ...]:
    return tuple(
        Delivery(
            value=one["Body"],
            id=one["MessageId"],
            group=one.get("Attributes", {}).get("MessageGroupId", ""),
            handle=one["ReceiptHandle"],
        )
        for one in told.get("Messages", ())
    )


class Streams:
    """A stream's and a group's verbs, through the REST door."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def append(self, stream: str, value: str, key: str) -> Operation:
        """On the stream's address, with the value as its idempotency key."""

        def read(told: Any) -> tuple[Seen, ...]:
            return (Seen(value=value, shard=told["shard"], offset=told["offset"]),)

        return await self._caller.rest(
            Kind.APPEND,
            stream,
            "POST",
            f"/streams/{stream}/records",
            read,
            body={"data": value, "key": key},
            headers={"idempotency-key": value},
            values=(value,),
        )

    async def produce(
        self, stream: str, shard: int, values: tuple[str, ...], sequence: int
    ) -> Operation:
        """A batch on a shard's address, as an idempotent producer whose first record has that sequence."""

        def read(told: Any) -> tuple[Seen, ...]:
            return _produced(told, values)

        return await self._caller.rest(
            Kind.APPEND,
            stream,
            "POST",
            f"/streams/{stream}/shards/{shard}/records",
            read,
            body={
                "records": [{"data": value} for value in values],
                "producer": {"id": self._caller.name, "epoch": 0, "sequence": sequence},
            },
            values=values,
        )

    async def read(self, stream: str, shard: int, offset: int) -> Operation:
        path = f"/streams/{stream}/shards/{shard}/records"
        query = {"offset": offset, "limit": 1000}

        def records(told: Any) -> tuple[Seen, ...]:
            return _records(told, shard)

        return await self._caller.rest(Kind.READ, stream, "GET", path, records, query=query)

    async def read_as(self, stream: str, group: str) -> tuple[Operation, str]:
        """As a member of a group, with the token that commits it."""
        token = ""

        def read(told: Any) -> tuple[Seen, ...]:
            nonlocal token
            token = told["token"]
            return _records(told)

        operation = await self._caller.rest(
            Kind.GROUP_READ,
            stream,
            "GET",
            f"/groups/{group}/records",
            read,
            query={"member": self._caller.name, "wait_seconds": 1, "limit": 100},
            group=group,
        )
        return operation, token

    async def commit(self, stream: str, group: str, token: str) -> Operation:
        path, body = f"/groups/{group}/commit", {"token": token}
        return await self._caller.rest(
            Kind.COMMIT, stream, "POST", path, _committed, body=body, group=group
        )

    async def leave(self, group: str) -> None:
        """Give up this client's shards at once; nothing that the history is about."""
        with suppress(httpx.HTTPError):
            await self._caller.http.delete(f"/v1/groups/{group}/members/{self._caller.name}")

    async def standing(self, stream: str, group: str) -> Operation:
        path = f"/groups/{group}"
        return await self._caller.rest(Kind.STANDING, stream, "GET", path, _standing, group=group)


def _produced(told: Any, values: tuple[str, ...]) -> tuple[Seen, ...]:
    if error := next((one["error"] for one in told["records"] if "error" in one), None):
        raise ItemRefused(error["code"])
    return tuple(
        Seen(value=value, shard=one["shard"], offset=one["offset"])
        for value, one in zip(values, told["records"], strict=True)
    )


def _records(told: Any, shard: int | None = None) -> tuple[Seen, ...]:
    """`shard`: the one whose address was read, where records do not name it."""
    return tuple(
        Seen(
            value=one["data"], shard=one["shard"] if shard is None else shard, offset=one["offset"]
        )
        for one in told["records"]
    )


def _committed(told: Any) -> tuple[Seen, ...]:
    if error := next((one["error"] for one in told["offsets"] if "error" in one), None):
        raise ItemRefused(error["code"])
    return tuple(Seen(shard=one["shard"], offset=one["offset"]) for one in told["offsets"])


def _standing(told: Any) -> tuple[Seen, ...]:
    return tuple(
        Seen(shard=one["shard"], offset=one["committed"])
        for one in told["shards"]
        if one["committed"] is not None
    )
