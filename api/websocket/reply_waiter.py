"""Waiting for the replies to requests over a socket, which ends with the socket."""

import asyncio
from contextlib import suppress

import msgspec

from api.http.responses import RequestContext, log_failure
from api.native.problems import code_of, status_of
from api.native.settlements import ReplyOut
from api.websocket.connection import SocketClosed
from api.websocket.frames import ServerReply
from api.websocket.session import PushSession
from storage.domain import limits
from storage.domain.errors import StorageBusy
from storage.domain.requests.reply import Replies
from storage.domain.requests.token import RequestId
from storage.requests.engine import Requests


class ReplyWaiter(msgspec.Struct, frozen=True):
    """Waiter for replies to requests. It holds no connection to a store."""

    requests: Requests

    def check_capacity(self, session: PushSession) -> None:
        """Raise StorageBusy when as many requests of a session are waiting as may."""
        if session.replies and len(session.replies) >= limits.PUSH_REQUESTS_MAX:
            raise StorageBusy(
                f"{limits.PUSH_REQUESTS_MAX} requests of this socket are waiting for replies."
            )

    def start(self, session: PushSession, id_: str, request: RequestId) -> None:
        """Wait in the background, and answer the frame with this id."""
        if session.connection is None:
            return
        if session.replies is None:
            session.replies = set()
        task = asyncio.create_task(self._answer(session, id_, request))
        session.replies.add(task)
        task.add_done_callback(session.replies.discard)

    async def _answer(self, session: PushSession, id_: str, request: RequestId) -> None:
        try:
            replies = await self._replies(request)
        except Exception as error:
            context = RequestContext(session.principal)
            log_failure(error, "request", status_of(code_of(error)), id_.encode(), context)
            payload = session.wire.failure(error, id_=id_)
        else:
            payload = session.wire.encode(_frame(id_, request, replies, session.wire.binary))
        with suppress(SocketClosed):
            await session.send_bytes(payload)

    async def _replies(self, request: RequestId) -> Replies:
        """Return the replies once they are complete."""
        while True:
            replies = await self.requests.replies(request, wait_ms=limits.WAIT_MS_MAX)
            if replies.is_complete:
                return replies


def _frame(id_: str, request: RequestId, replies: Replies, binary: bool) -> ServerReply:
    return ServerReply(
        id_,
        request.name,
        [ReplyOut.from_domain(reply, binary) for reply in replies.replies],
        replies.is_complete,
        replies.is_timed_out,
    )
