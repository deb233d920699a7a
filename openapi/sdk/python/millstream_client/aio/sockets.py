"""Publishing, requests and replies over one WebSocket."""

import asyncio
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from millstream_client import frames, messages, publications
from millstream_client.aio.connections import PATH, AsyncConnection
from millstream_client.aio.transport import AsyncTransport
from millstream_client.batches import batches
from millstream_client.bodies import encode_body
from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.conversing import Said
from millstream_client.errors import ItemRefused, MillstreamError, OutcomeUnknown, PartlyRefused
from millstream_client.messages import only
from millstream_client.publications import NewPublication, OutPublication, Published
from millstream_client.publisher import Answer, Publisher, reply_frame, request_frame
from millstream_client.repeating import Remaining
from millstream_client.requests import Reply
from millstream_client.retries import Attempts

BATCH_BYTES_MAX = 2**20  # of bodies in one frame, which may have 2 MiB with all that is around them


class AsyncSocket(AsyncConnection[Publisher]):
    """WebSocket for publishing to topics, for requests and for replies.

    Use it once, `async with`; tasks can share it. The next call need not wait for the answer to the last one. A lost
    connection is reopened, for as long as calls are retried, and frames without an answer are sent again: each takes effect
    once. Raises MillstreamError.
    """

    _no_socket = "The in-memory service has no WebSocket; topic(), queue() and reply() work."
    _closed = "The socket is closed"
    _reconnects_forever = False

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self._arriving: dict[str, asyncio.Future[Answer]] = {}

    async def _begin(self) -> Publisher:
        return Publisher()

    async def publish(
        self, topic: str, message: Any, *, subject: str = "", idempotency_key: str | None = None
    ) -> Published:
        """Publish a body or a NewPublication to a topic. Raises ItemRefused.

        `subject` applies to a plain body. The result arrives when the message is stored as after `Topic.publish`.
        """
        out = publications.outgoing(_publication(message, subject))
        return only(await self._publish(topic, [out], idempotency_key or uuid4().hex))

    async def publish_many(
        self, topic: str, items: Iterable[Any], *, subject: str = ""
    ) -> list[Published]:
        """Publish bodies or NewPublications to a topic; return the result of each, in order.

        Raises PartlyRefused if some were rejected; frames after the first one with a rejected message are not sent.
        """
        out = (publications.outgoing(_publication(item, subject)) for item in items)
        done: list[Published] = []
        for batch in batches(out, lambda message: len(message.body), BATCH_BYTES_MAX):
            results = await self._publish(topic, batch, uuid4().hex)
            if any(isinstance(result, ItemRefused) for result in results):
                raise PartlyRefused([*done, *results])
            done += [result for result in results if isinstance(result, Published)]
        return done

    async def request(
        self,
        to: str,
        message: Any,
        *,
        replies_max: int = 1,
        timeout_seconds: float = 20.0,
        subject: str = "",
        idempotency_key: str | None = None,
    ) -> list[Reply]:
        """Send a request to "queue:quotes" or "topic:offers"; return its replies.

        `message`: a body, or a NewMessage for a queue and a NewPublication for a topic; `subject` applies to a plain body. It
        returns as soon as there are `replies_max` replies, and at the deadline with those that arrived. A repeat with the same
        key sends nothing, and waits for the same replies.
        """
        key = idempotency_key or uuid4().hex
        frame = request_frame(to, _outgoing(to, message, subject), key)
        frame |= {"replies_max": replies_max, "timeout_seconds": timeout_seconds}
        operation = "send_request" if to.startswith("queue:") else "publish_request"
        answer = await self._ask(operation, frame)
        return answer.replies if isinstance(answer, frames.Reply) else []

    async def reply(
        self,
        reply_to: str,
        body: Any,
        *,
        headers: dict[str, str] | None = None,
        content_type: str = "",
        idempotency_key: str | None = None,
    ) -> None:
        """Reply to a request: the `reply_to` of a received message.

        Acknowledge the message afterwards. Raises Conflict, with the code `reply_taken` or `reply_too_late`, if no reply is accepted any more.
        """
        data, content_type = encode_body(body, content_type)
        reply = {"body": data, "headers": headers or {}, "content_type": content_type}
        await self._ask("send_reply", reply_frame(reply_to, reply, idempotency_key or uuid4().hex))

    async def _publish(
        self, topic: str, batch: list[OutPublication], key: str
    ) -> list[Published | ItemRefused]:
        """Publish a batch; retry temporary rejections with the same key, which adds nothing twice."""
        frame = {"type": "publish", "to": f"topic:{topic}", "items": batch, "idempotency_key": key}
        remaining = Remaining(_call("publish_messages", frame), self._options.retries)
        while True:
            answer = await self._ask("publish_messages", frame)
            results = publications.results(answer.results if isinstance(answer, frames.Ok) else [])
            pause = remaining.pause_after(results)
            if pause is None:
                return results
            await self._transport.sleep(pause)

    # ── Frames ──

    async def _ask(self, operation: str, frame: Said) -> frames.Ok | frames.Reply:
        """Send a frame and return its answer; repeat it after a temporary rejection."""
        attempts = Attempts(_call(operation, frame), self._options.retries, service=self._service)
        while True:
            answer = await self._answer(frame)
            if not isinstance(answer, MillstreamError):
                return answer
            await self._transport.sleep(attempts.pause_after(answer))

    async def _answer(self, frame: Said) -> Answer:
        """Send a frame and return its answer. Raises the error that ends the connection."""
        session = self._open_session
        if self._failure is not None:
            raise self._failure
        id_, said = session.send(frame)
        arriving: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._arriving[id_] = arriving
        try:
            await self._say(said)
            return await arriving
        finally:
            session.drop(id_)
            del self._arriving[id_]

    async def _tell(self) -> None:
        """Hand answers to the calls that wait for them."""
        for id_, answer in self._open_session.take_answers().items():
            if id_ in self._arriving and not self._arriving[id_].done():
                self._arriving[id_].set_result(answer)
        if self._failure is not None:
            self._fail_calls(self._failure)
        await super()._tell()

    def _fail_calls(self, failure: BaseException) -> None:
        for arriving in self._arriving.values():
            if not arriving.done():
                unknown = OutcomeUnknown(f"No answer came before the connection ended: {failure}")
                unknown.__cause__ = failure
                arriving.set_exception(unknown)


def _publication(message: Any, subject: str) -> NewPublication:
    return message if isinstance(message, NewPublication) else NewPublication(message, subject)


def _outgoing(to: str, message: Any, subject: str) -> OutPublication | messages.OutMessage:
    """Return the message of a request. Raises ValueError."""
    if to.startswith("topic:"):
        return publications.outgoing(_publication(message, subject))
    if to.startswith("queue:") and not subject:
        return messages.outgoing(message)
    if to.startswith("queue:"):
        raise ValueError("A message to a queue has no subject.")
    raise ValueError(f"{to!r} must start with queue: or topic:")


def _call(operation: str, frame: Said) -> Call[None]:
    """Return the call that has the effect of a frame, for decisions about its retries."""
    headers = {IDEMPOTENCY_KEY: frame["idempotency_key"]}
    return Call(operation, "POST", PATH, lambda response: None, headers=headers)
