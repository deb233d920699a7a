"""Publishing, receiving, reading and groups over WebSocket, recorded like other protocols."""

from collections import deque
from typing import Any

from storage.domain.errors import ErrorCategory, ErrorCode
from tests.chaos.callers import UNKNOWN, Caller, Told
from tests.chaos.history import Gap, Kind, Operation, Outcome, Seen
from tests.chaos.queue_protocols import Delivery, delivery_of
from tests.chaos.sockets import Frame, Session, SocketLost
from tests.chaos.stream_protocol import records_of

CREDIT = 20
READING_CREDIT = 500
SUB = "it"
REFUSED, NOT_DONE, TIMED_OUT = 400, 503, 504
UNAVAILABLE = {code for code in ErrorCode if code.category is ErrorCategory.UNAVAILABLE}


class Publisher:
    """Send to queues and append to streams."""

    def __init__(self, caller: Caller, url: str) -> None:
        self.caller = caller
        self.session = Session(url, self)

    async def send(self, queue: str, value: str, group: str = "") -> Operation:
        """Send a message, with the value as idempotency key or deduplication id."""
        message = {"body": value, **({"group": group, "dedup_id": value} if group else {})}

        def read(told: Any) -> Told:
            return Told((Seen(value=value, id=told["id"], offset=told["offset"], group=group),))

        return await self._publish(Kind.SEND, f"queue:{queue}", message, value, group, read)

    async def append(self, stream: str, value: str, key: str) -> Operation:
        """Append a record, with the value as idempotency key."""

        def read(told: Any) -> Told:
            return Told((Seen(value=value, shard=told["shard"], offset=told["offset"]),))

        record = {"data": value, "key": key}
        return await self._publish(Kind.APPEND, f"stream:{stream}", record, value, key, read)

    async def _publish(
        self, kind: Kind, to: str, item: Any, value: str, group: str, read: Any
    ) -> Operation:
        log = to.partition(":")[2]
        return await _asked(
            self,
            kind,
            log,
            "publish",
            {"to": to, "items": [item], "idempotency_key": value},
            lambda frame: read(frame["results"][0]),
            values=(value,),
            group=group,
        )

    async def begins(self) -> None:
        """Subscribe to nothing."""

    async def resumes(self) -> None:
        """Resume nothing."""

    async def hears(self, frame: Frame) -> None:
        """Ignore the frame."""


async def _asked(
    who: Any, kind: Kind, log: str, type_: str, fields: Frame, read: Any, **about: Any
) -> Operation:
    """Send a frame, and record its answer as an operation."""
    caller: Caller = who.caller
    invoked = caller.history.now()
    try:
        frame = await who.session.request(type_, **fields)
    except ConnectionRefusedError:
        return caller.note(kind, log, invoked, Outcome.FAIL, 0, "", Told(), **about)
    except SocketLost:
        return caller.note(kind, log, invoked, Outcome.UNKNOWN, 0, "", Told(), **about)
    if problem := _problem(frame):
        status = problem["status"]
        refused = status < 500 or status == NOT_DONE
        outcome = Outcome.FAIL if refused else Outcome.UNKNOWN
        return caller.note(kind, log, invoked, outcome, status, problem["code"], Told(), **about)
    return caller.note(kind, log, invoked, Outcome.OK, 0, "", read(frame), **about)


def _problem(frame: Frame) -> Any:
    """The problem of the frame or its one item, or None."""
    if frame["type"] == "error":
        return frame["problem"]
    for item in frame.get("results", ()):
        if "error" in item:
            return {"status": _status(item["error"]["code"]), **item["error"]}
    return None


def _status(code: str) -> int:
    """Return the status of an item's error: it has none of its own."""
    if code == UNKNOWN:
        return TIMED_OUT
    return NOT_DONE if code in UNAVAILABLE else REFUSED


class Worker:
    """Receive messages within the credit; `arrived` holds unsettled ones."""

    def __init__(self, caller: Caller, url: str, queue: str) -> None:
        self.caller = caller
        self.queue = queue
        self.session = Session(url, self)
        self.arrived: deque[Delivery] = deque()
        self._granted: deque[float] = deque()

    async def settle(self, delivery: Delivery, kind: Kind) -> Operation:
        """Settle, and grant credit for another message."""
        fields: Frame = {"sub": SUB, "receipt_handles": [delivery.handle]}
        if kind is Kind.NACK:
            fields["delay_seconds"] = 0
        about = {"values": (delivery.value,), "delivery": delivery.receive_count}
        return await _asked(self, kind, self.queue, kind.value, fields, lambda _: Told(), **about)

    async def grant(self) -> None:
        """Grant credit for one more message."""
        self._granted.append(self.caller.history.now())
        await self.session.send_frame("credit", sub=SUB, messages=1, bytes=1_000)

    async def begins(self) -> None:
        self.arrived.clear()
        self._granted = deque([self.caller.history.now()] * CREDIT)
        credit = {"messages": CREDIT, "bytes": 1_000_000}
        source = f"queue:{self.queue}"
        await self.session.request("subscribe", sub=SUB, source=source, credit=credit)

    async def resumes(self) -> None:
        for _ in range(CREDIT):  # the last grants may have been lost
            await self.grant()

    async def hears(self, frame: Frame) -> None:
        if frame["type"] == "messages":
            deliveries = tuple(delivery_of(message) for message in frame["messages"])
            for delivery in deliveries:
                # Its credit was granted before the message was received from the queue.
                since = self._granted.popleft()
                self.caller.went_well(Kind.PUSHED, self.queue, since, Told((delivery,)))
            self.arrived.extend(deliveries)


class Reader:
    """Read a stream from its start, each shard after its parents, and resume."""

    def __init__(self, caller: Caller, url: str, stream: str) -> None:
        self.caller = caller
        self.stream = stream
        self.session = Session(url, self)
        self.next_offsets: dict[int, int] = {}

    async def begins(self) -> None:
        offsets = {str(shard): offset for shard, offset in self.next_offsets.items()}
        start = {"offsets": offsets} if offsets else {"from": "earliest"}
        credit = {"messages": READING_CREDIT, "bytes": 1_000_000}
        source = f"stream:{self.stream}"
        await self.session.request("subscribe", sub=SUB, source=source, start=start, credit=credit)

    async def resumes(self) -> None:
        await self.session.send_frame("credit", sub=SUB, messages=READING_CREDIT, bytes=1_000_000)

    async def hears(self, frame: Frame) -> None:
        if frame["type"] == "records":
            shard = frame["shard"]
            self.note(shard, Told(records_of(frame["records"], shard)))
            self.next_offsets[shard] = frame["next_offset"]
            number = len(frame["records"])
            await self.session.send_frame("credit", sub=SUB, messages=number, bytes=number * 1_000)
        elif frame["type"] == "gap":
            gap = Gap(frame["shard"], frame["first"], frame["next"], frame["reason"])
            self.note(gap.shard, Told(gaps=(gap,)))
            self.next_offsets[gap.shard] = gap.next

    def note(self, shard: int, told: Told) -> None:
        """Record a push; `first` is where the shard's last frame ended, if there was one."""
        now, first = self.caller.history.now(), self.next_offsets.get(shard, -1)
        self.caller.went_well(Kind.READ, self.stream, now, told, first=first)


class Member:
    """Read as a member of a group, and commit everything."""

    def __init__(self, caller: Caller, url: str, stream: str, group: str) -> None:
        self.caller = caller
        self.stream = stream
        self.group = group
        self.session = Session(url, self)
        self.due: dict[int, int] = {}
        """Offsets to be committed, by shard."""

    async def commit(self, shard: int, up_to: int) -> Operation:
        """Commit everything before `up_to`."""
        fields = {"sub": SUB, "shard": shard, "up_to": up_to}
        return await _asked(
            self, Kind.COMMIT, self.stream, "ack", fields, lambda _: Told(), group=self.group
        )

    async def begins(self) -> None:
        self.due.clear()
        credit = {"messages": READING_CREDIT, "bytes": 1_000_000}
        source = f"stream:{self.stream}"
        await self.session.request(
            "subscribe", sub=SUB, source=source, group=self.group, mode="group", credit=credit
        )

    async def resumes(self) -> None:
        await self.session.send_frame("credit", sub=SUB, messages=READING_CREDIT, bytes=1_000_000)

    async def hears(self, frame: Frame) -> None:
        now = self.caller.history.now()
        match frame["type"]:
            case "assigned":
                owns = tuple(each_shard["shard"] for each_shard in frame["shards"])
                told = Told(generation=frame["generation"], owns=owns)
                self._note(now, told)
            case "records":
                self._note(now, Told(records_of(frame["records"], frame["shard"])))
                self.due[frame["shard"]] = frame["next_offset"]
                number = len(frame["records"])
                await self.session.send_frame(
                    "credit", sub=SUB, messages=number, bytes=number * 1_000
                )
            case "gap":
                gap = Gap(frame["shard"], frame["first"], frame["next"], frame["reason"])
                self._note(now, Told(gaps=(gap,)))
                self.due[gap.shard] = gap.next
            case "revoking":
                for shard in frame["shards"]:
                    self.due.pop(shard, None)
                await self.session.send_frame("give_up", sub=SUB, shards=frame["shards"])
            case "revoked":
                for shard in frame["shards"]:
                    self.due.pop(shard, None)
            case _:
                pass

    def _note(self, now: float, told: Told) -> None:
        self.caller.went_well(Kind.GROUP_READ, self.stream, now, told, group=self.group)
