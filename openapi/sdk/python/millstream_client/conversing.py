"""The client's side of `millstream.v1` for one subscription, without I/O.

    connected() ──▶ hello ─▶ welcome ──resumed──▶ continue: send verdicts and credit again that may not have arrived
                                    └──new─────▶ subscribe, after the last record

A delivery counts as arrived once it is in `arrived`; credit is returned as its owner takes deliveries from there.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from millstream_client import frames
from millstream_client.errors import ItemRefused, MillstreamError, refusal
from millstream_client.messages import Delivery, Settlement, Verdict
from millstream_client.records import Gap, Record

SUB = "s"
SUBSCRIBE_ID = "subscribe"
EXPIRED = "receipt_handle_expired"
MESSAGES_DEFAULT = 100
BYTES_DEFAULT = 1024 * 1024

Said = dict[str, Any]
Item = Delivery | Record | Gap


@dataclass(frozen=True)
class Ask:
    """A subscription request.

    `positions`: next offset by shard, in the stream of `stream_id`; `extra`: further fields of the frame.
    """

    source: str
    group: str = ""
    positions: Mapping[int, int] | None = None
    stream_id: str = ""
    messages: int = MESSAGES_DEFAULT
    bytes: int = BYTES_DEFAULT
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Arrived:
    """An item for the subscriber, and its cost in credit."""

    item: Item
    size: int


class Refusal(Exception):
    """The service rejected the subscription, or ended it. `error` has the reason."""

    def __init__(self, error: MillstreamError) -> None:
        self.error = error
        super().__init__(str(error))


class Conversation:
    """State of one subscription. `answers` holds the results of settlements and commits by id."""

    def __init__(self, ask: Ask, client: str = "python", token: str = "") -> None:
        self._ask = ask
        self._client = client
        self._token = token
        self._session = ""
        self._seq = 0
        self._positions = dict(ask.positions or {})
        self._stream_id = ask.stream_id
        self._ids = count(1)
        self._unanswered: dict[str, Said] = {}
        self._taken_messages = 0
        self._taken_bytes = 0
        self._granted: deque[tuple[int, int]] = deque()  # of which no pong has come yet
        self._revoking: set[int] = set()
        self._in_hand = -1  # the shard of the record that its owner looks at
        self._said_again: set[str] = set()
        self.arrived: deque[Arrived] = deque()
        self.answers: dict[str, frames.Ok | MillstreamError] = {}
        self.is_on = False
        self.bye: frames.Bye | None = None

    # ── Connecting ──

    def connected(self) -> list[Said]:
        """Return the first frame for a new connection."""
        self.bye = None
        self.is_on = False
        hello: Said = {"type": "hello", "client": self._client}
        if self._token:
            hello["token"] = self._token
        if self._session:
            hello["resume"] = {"session": self._session, "seq": self._seq}
        return [hello]

    def hear(self, payload: bytes) -> list[Said]:
        """Process a message of the service; return the immediate reply. Raises Refusal."""
        return [said for frame in frames.decode_frames(payload) for said in self._hear(frame)]

    def _hear(self, frame: frames.ServerFrame) -> Iterable[Said]:
        match frame:
            case frames.Messages() | frames.Records() | frames.GapTold() | frames.ShardEnded():
                self._seq = max(self._seq, frame.seq)
                self._deliver(frame)
            case frames.Ping():
                return [{"type": "pong", "seq": self._seq}]
            case frames.Pong():
                if self._granted:
                    self._granted.popleft()
            case frames.Ok():
                self._stream_id = frame.stream_id or self._stream_id
                self._answered(frame.id, frame)
            case frames.Error():
                self._failed(frame)
            case frames.Welcome():
                return self._welcomed(frame)
            case frames.Revoking():
                self._revoking |= set(frame.shards)
                return self._given_up()
            case frames.Revoked():
                self._revoked(frame.shards)
            case frames.Assigned():
                self._revoking -= {place.shard for place in frame.shards}
            case frames.Bye():
                self.bye = frame
            case _:  # paused and resumed: nothing comes for a while
                pass
        return []

    def _welcomed(self, frame: frames.Welcome) -> list[Said]:
        resumed = frame.resumed and frame.session == self._session
        self._session = frame.session
        self._said_again |= self._unanswered.keys()
        if resumed:
            self.is_on = True
            return [*self._granted_again(), *self._unanswered.values()]
        self._seq = 0
        self._granted.clear()
        self._taken_messages = self._taken_bytes = 0
        if self._ask.group:  # its shards may be another's now: what was not looked at comes again
            self.arrived.clear()
            self._revoking.clear()
        return [self._subscribe(), *self._unanswered.values()]

    def _subscribe(self) -> Said:
        waiting = len(self.arrived)
        size = sum(one.size for one in self.arrived)
        room = {
            "messages": max(1, self._ask.messages - waiting),
            "bytes": max(1, self._ask.bytes - size),
        }
        said: Said = {"type": "subscribe", "id": SUBSCRIBE_ID, "sub": SUB, "credit": room}
        said |= {"source": self._ask.source, **self._ask.extra}
        if self._ask.group:
            said |= {"mode": "group", "group": self._ask.group}
        elif self._positions:
            start: Said = {"offsets": dict(self._positions)}
            start |= {"stream_id": self._stream_id} if self._stream_id else {}
            said |= {"start": start}
        return said

    # ── Deliveries ──

    def _deliver(
        self, frame: frames.Messages | frames.Records | frames.GapTold | frames.ShardEnded
    ) -> None:
        match frame:
            case frames.Messages():
                for message in frame.messages:
                    self.arrived.append(Arrived(message, len(message.body)))
            case frames.Records():
                self._positions[frame.shard] = frame.next_offset
                for record in frame.records:
                    placed = msgspec.structs.replace(record, shard=frame.shard)
                    self.arrived.append(Arrived(placed, len(record.data)))
            case frames.GapTold():
                self._positions[frame.shard] = frame.next
                gap = Gap(
                    shard=frame.shard, first=frame.first, next=frame.next, reason=frame.reason
                )
                self.arrived.append(Arrived(gap, 0))
            case frames.ShardEnded():
                pass  # its position stays: from there the service goes on with its children

    def done(self) -> list[Said]:
        """Mark the last taken delivery as processed; return the frames to send."""
        self._in_hand = -1
        return self._given_up()

    def take(self) -> tuple[Item, list[Said]]:
        """Take the next delivery; return it with the frames to send.

        New credit is given once half of it is used.
        """
        one = self.arrived.popleft()
        if not isinstance(one.item, Gap):
            self._taken_messages += 1
            self._taken_bytes += one.size
        if not isinstance(one.item, Delivery):
            self._in_hand = one.item.shard
        return one.item, self._grant()

    def _grant(self) -> list[Said]:
        if (
            2 * self._taken_messages < self._ask.messages
            and 2 * self._taken_bytes < self._ask.bytes
        ):
            return []
        if not self.is_on:
            return []
        messages, size = self._taken_messages, self._taken_bytes
        self._taken_messages = self._taken_bytes = 0
        self._granted.append((messages, size))
        return self._credit(messages, size)

    def _credit(self, messages: int, size: int) -> list[Said]:
        """Return a credit frame with an id, whose answer confirms its arrival."""
        credit = {"type": "credit", "sub": SUB, "messages": messages, "bytes": size}
        return [{**credit, "seq": self._seq}, {"type": "ping"}]

    def _granted_again(self) -> list[Said]:
        """Return the credit that a lost connection may have swallowed.

        It is not more than the space that remains beside the deliveries waiting here.
        """
        waiting = sum(one.size for one in self.arrived)
        messages = min(
            sum(one for one, _ in self._granted), max(0, self._ask.messages - len(self.arrived))
        )
        size = min(sum(one for _, one in self._granted), max(0, self._ask.bytes - waiting))
        self._granted.clear()
        if not messages and not size:
            return []
        self._granted.append((messages, size))
        return self._credit(messages, size)

    # ── Verdicts and commits ──

    def settle(self, settlement: Settlement) -> tuple[str, list[Said]]:
        """Return the id of a settlement's answer, and the frames to send.

        Without an answer, the settlement is sent again over the next connection; if it is then rejected as expired, the first one
        may have taken effect.
        """
        said: Said = {"receipt_handles": [settlement.receipt_handle]}
        match settlement.action:
            case Verdict.NACK if settlement.delay_seconds is not None:
                said["delay_seconds"] = settlement.delay_seconds
            case Verdict.EXTEND:
                said["visibility_timeout_seconds"] = settlement.visibility_timeout_seconds
            case Verdict.REJECT:
                said["reason"] = settlement.reason
            case Verdict.ACK if settlement.reply is not None:
                said["reply"] = settlement.reply
            case _:  # nothing more to say
                pass
        return self._asked(str(settlement.action), said)

    def commit(self, shard: int, up_to: int) -> tuple[str, list[Said]]:
        """Return the id of a commit's answer, and the frames to send.

        The commit covers everything in a shard before `up_to`.
        """
        return self._asked("ack", {"shard": shard, "up_to": up_to})

    def _asked(self, kind: str, fields: Said) -> tuple[str, list[Said]]:
        id_ = f"c{next(self._ids)}"
        said = {"type": kind, "id": id_, "sub": SUB, **fields}
        self._unanswered[id_] = said
        return id_, [said] if self.is_on else []

    def _answered(self, id_: str, answer: frames.Ok | MillstreamError) -> None:
        if id_ == SUBSCRIBE_ID:
            self.is_on = True
        elif self._unanswered.pop(id_, None) is not None:
            self.answers[id_] = answer

    def result(self, id_: str) -> ItemRefused | None:
        """Remove an answer that arrived; return why a reply was refused, if it was.

        Raises the error that it contains.
        """
        answer = self.answers.pop(id_)
        again = id_ in self._said_again
        self._said_again.discard(id_)
        if isinstance(answer, MillstreamError):
            raise answer
        for result in answer.results:
            error = result.get("error")
            if error and not (again and error["code"] == EXPIRED):
                raise _refused(error)
        replies = (result.get("reply_error") for result in answer.results)
        return next((_refused(error) for error in replies if error), None)

    def _failed(self, frame: frames.Error) -> None:
        error = refusal(int(frame.problem.get("status", 500)), frame.problem)
        if frame.id and frame.id != SUBSCRIBE_ID:
            self._answered(frame.id, error)
        elif not frame.receipt_handles:  # those are deliveries that ended by themselves
            raise Refusal(error)

    # ── Groups ──

    def _given_up(self) -> list[Said]:
        """Return the revoked shards that have no more deliveries here."""
        if not self._revoking:
            return []
        waiting = {one.item.shard for one in self.arrived if not isinstance(one.item, Delivery)}
        done = sorted(self._revoking - waiting - {self._in_hand})
        self._revoking -= set(done)
        return [{"type": "give_up", "sub": SUB, "shards": done}] if done else []

    def _revoked(self, shards: Iterable[int]) -> None:
        gone = set(shards)
        self._revoking -= gone
        kept = [
            one
            for one in self.arrived
            if isinstance(one.item, Delivery) or one.item.shard not in gone
        ]
        for one in self.arrived:
            if one not in kept and not isinstance(one.item, Gap):
                self._taken_messages += 1
                self._taken_bytes += one.size
        self.arrived = deque(kept)


def _refused(error: Mapping[str, Any]) -> ItemRefused:
    return ItemRefused(error["code"], error["detail"], bool(error["retryable"]))
