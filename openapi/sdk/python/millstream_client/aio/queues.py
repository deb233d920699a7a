"""Queues: configuration, messages, and dead letters."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from millstream_client import messages as wire
from millstream_client import requests
from millstream_client.aio.definitions import create
from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.pages import all_pages
from millstream_client.aio.resources import AsyncResource
from millstream_client.aio.subscriptions import AsyncSubscription
from millstream_client.aio.work import AsyncWorking
from millstream_client.batches import batches
from millstream_client.conversing import BYTES_DEFAULT, MESSAGES_DEFAULT
from millstream_client.core.api.queues.browse_messages import browse_messages
from millstream_client.core.api.queues.change_move import change_move
from millstream_client.core.api.queues.change_queue import change_queue
from millstream_client.core.api.queues.delete_message import delete_message
from millstream_client.core.api.queues.delete_queue import delete_queue
from millstream_client.core.api.queues.get_message import get_message
from millstream_client.core.api.queues.get_move import get_move
from millstream_client.core.api.queues.get_queue import get_queue
from millstream_client.core.api.queues.get_queue_stats import get_queue_stats
from millstream_client.core.api.queues.list_dead_letters import list_dead_letters
from millstream_client.core.api.queues.list_death_reasons import list_death_reasons
from millstream_client.core.api.queues.list_moves import list_moves
from millstream_client.core.api.queues.list_parked_groups import list_parked_groups
from millstream_client.core.api.queues.list_queue_consumers import list_queue_consumers
from millstream_client.core.api.queues.pause_group import pause_group
from millstream_client.core.api.queues.pause_queue import pause_queue
from millstream_client.core.api.queues.purge_queue import purge_queue
from millstream_client.core.api.queues.put_queue import put_queue
from millstream_client.core.api.queues.redrive_queue import redrive_queue
from millstream_client.core.api.queues.resume_group import resume_group
from millstream_client.core.api.queues.resume_queue import resume_queue
from millstream_client.core.api.queues.start_move import start_move
from millstream_client.core.models.message_state import MessageState
from millstream_client.core.models.move_change import MoveChange
from millstream_client.core.models.move_state import MoveState
from millstream_client.core.models.queue_patch import QueuePatch
from millstream_client.core.models.queue_stored import QueueStored
from millstream_client.core.types import UNSET
from millstream_client.errors import ItemRefused, MillstreamError
from millstream_client.filters import query_of
from millstream_client.messages import NewMessage, Sent, Settled, Settlement, Verdict
from millstream_client.requests import Reply
from millstream_client.starting import Plan

if TYPE_CHECKING:
    from millstream_client.core.models.browsed_message_out import BrowsedMessageOut
    from millstream_client.core.models.dead_letter_out import DeadLetterOut
    from millstream_client.core.models.death_reason_out import DeathReasonOut
    from millstream_client.core.models.move_out import MoveOut
    from millstream_client.core.models.parked_group_out import ParkedGroupOut
    from millstream_client.core.models.queue_consumer_out import QueueConsumerOut
    from millstream_client.core.models.queue_out import QueueOut
    from millstream_client.core.models.queue_stats_out import QueueStatsOut
    from millstream_client.core.models.redriven import Redriven
    from millstream_client.core.params import (
        QueueConfigParams,
        QueuePatchParams,
        RedriveConfigParams,
    )
    from millstream_client.filters import MessageFilter


class AsyncQueue(AsyncResource, AsyncWorking):
    """A queue, whether it exists or not. Raises MillstreamError.

    Fields of the configuration have the names of the REST API: `visibility_timeout_seconds`, `attempts_max`, …
    """

    # ── Configuration ──

    async def create(
        self, *, only_new: bool = False, **config: Unpack[QueueConfigParams]
    ) -> QueueStored:
        """Create the queue. If it exists with these settings, return it, with `created` False.

        Settings that you leave out are not compared. Raises AlreadyExists, which names the settings that differ; with
        `only_new`, whenever it exists.
        """
        call = replace(put_queue(self.name, if_none_match="*"), json=config)
        return await create(self.transport, call, QueueStored.from_dict, only_new=only_new)

    async def apply(
        self, *, dry_run: bool = False, **config: Unpack[QueueConfigParams]
    ) -> QueueStored:
        """Create the queue, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults. With `dry_run`, nothing is stored.
        """
        call = put_queue(self.name, dry_run=dry_run)
        return await self.transport.call(replace(call, json=config))

    async def config(self) -> QueueOut:
        """Return the configuration."""
        return await self.transport.call(get_queue(self.name))

    async def change(self, **config: Unpack[QueuePatchParams]) -> QueueOut:
        """Change fields of the configuration; None resets a field to its default."""
        call = change_queue(self.name, body=QueuePatch())
        return await self.transport.call(replace(call, json=config))

    async def pause(self) -> QueueOut:
        """Pause delivery: the queue accepts messages and delivers none until it is resumed."""
        return await self.transport.call(pause_queue(self.name))

    async def resume(self) -> QueueOut:
        """Resume delivery."""
        return await self.transport.call(resume_queue(self.name))

    async def delete(self) -> None:
        """Delete the queue and its messages."""
        await self.transport.call(delete_queue(self.name))

    async def stats(self) -> QueueStatsOut:
        """Return exact message counts by state."""
        return await self.transport.call(get_queue_stats(self.name))

    async def consumers(self) -> list[QueueConsumerOut]:
        """Return the consumers of the last five minutes, most messages first."""
        return (await self.transport.call(list_queue_consumers(self.name))).items

    # ── Sending ──

    async def send(
        self,
        body: Any,
        *,
        headers: dict[str, str] | None = None,
        content_type: str = "",
        group: str = "",
        dedup_id: str = "",
        delay_seconds: float | None = None,
        ttl_seconds: float | None = None,
        priority: int = 0,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Send one message. `body`: bytes, text, or any value with a JSON form."""
        message = NewMessage(
            body, headers, content_type, group, dedup_id, delay_seconds, ttl_seconds, priority
        )
        [sent] = await self._send([wire.outgoing(message)], idempotency_key)
        return sent

    async def request(
        self,
        body: Any,
        *,
        timeout_seconds: float = 20.0,
        headers: dict[str, str] | None = None,
        content_type: str = "",
        group: str = "",
        priority: int = 0,
        idempotency_key: str | None = None,
    ) -> Reply:
        """Send a message, and wait for the reply of its receiver. Raises NoReply.

        The message expires after `timeout_seconds`. A repeat with the same key sends nothing, and waits for the same reply.
        """
        call = requests.send_request(
            self.name,
            body,
            timeout_seconds,
            idempotency_key or uuid.uuid4().hex,
            headers=headers,
            content_type=content_type,
            group=group,
            priority=priority,
        )
        answer = await self.transport.call(call)
        while not answer.complete:
            answer = await self.transport.call(requests.get_replies(answer.request))
        return requests.first(answer.replies)

    async def send_many(self, messages: Iterable[Any]) -> list[Sent]:
        """Send bodies or NewMessages.

        If they do not fit into one call, they are sent in several calls, each all or nothing.
        """
        out = map(wire.outgoing, messages)
        sent: list[Sent] = []
        for batch in batches(out, lambda message: len(message.body)):
            sent += await self._send(batch, None)
        return sent

    async def _send(self, batch: Sequence[wire.OutMessage], key: str | None) -> list[Sent]:
        return await self.transport.call(wire.send(self.name, batch, key or uuid.uuid4().hex))

    # ── Receiving ──

    async def receive(
        self,
        messages_max: int = 1,
        *,
        wait_seconds: float | None = None,
        visibility_timeout_seconds: float | None = None,
    ) -> list[AsyncMessage]:
        """Receive messages, waiting for the first; an empty list means that none arrived."""
        call = wire.receive(
            self.name, messages_max, wait_seconds, visibility_timeout_seconds, uuid.uuid4().hex
        )
        return [AsyncMessage(delivery, self) for delivery in await self.transport.call(call)]

    async def messages(
        self,
        *,
        messages_max: int = 1,
        wait_seconds: float = 20.0,
        visibility_timeout_seconds: float | None = None,
        until_empty: bool = False,
    ) -> AsyncIterator[AsyncMessage]:
        """Yield messages indefinitely, or until none arrives within `wait_seconds`.

        Settle each of them. `messages_max` messages are received at a time; those not yet yielded are released when the iteration
        ends.
        """
        while True:
            batch = await self.receive(
                messages_max,
                wait_seconds=wait_seconds,
                visibility_timeout_seconds=visibility_timeout_seconds,
            )
            if until_empty and not batch:
                return
            async for message in self._each(batch):
                yield message

    async def _each(self, batch: list[AsyncMessage]) -> AsyncIterator[AsyncMessage]:
        waiting = batch[::-1]
        try:
            while waiting:
                yield waiting.pop()
        finally:
            if waiting:
                with suppress(MillstreamError):  # they come back at their timeout
                    await self.release(waiting)

    def subscribe(
        self,
        *,
        messages: int = MESSAGES_DEFAULT,
        bytes: int = BYTES_DEFAULT,
        visibility_timeout_seconds: float | None = None,
        auto_extend: bool = True,
    ) -> AsyncSubscription:
        """Subscribe to the queue's messages over a WebSocket, with a prefetch limit.

        With `auto_extend`, messages stay hidden while the connection is open.
        """
        plan = Plan(
            queue=self.name,
            messages=messages,
            bytes=bytes,
            visibility_timeout_seconds=visibility_timeout_seconds,
            auto_extend=auto_extend,
        )
        return AsyncSubscription(self.transport, plan)

    # ── Settling ──

    async def settle(self, settlements: Iterable[Settlement]) -> list[Settled | ItemRefused]:
        """Settle deliveries; return one result for each, in order."""
        results: list[Settled | ItemRefused] = []
        for batch in batches(settlements, lambda one: len(one.receipt_handle)):
            given = await self.transport.call(wire.settle(self.name, batch))
            results += given
        return results

    async def settle_one(self, settlement: Settlement) -> Settled:
        """Settle one delivery. Raises ItemRefused."""
        return wire.only(await self.settle([settlement]))

    async def ack(self, messages: Iterable[AsyncMessage]) -> list[Settled | ItemRefused]:
        """Acknowledge messages, which deletes them."""
        return await self.settle(
            Settlement(message.receipt_handle, Verdict.ACK) for message in messages
        )

    async def release(self, messages: Iterable[AsyncMessage]) -> list[Settled | ItemRefused]:
        """Return messages without counting an attempt; they are ready immediately."""
        return await self.settle(
            Settlement(message.receipt_handle, Verdict.RELEASE) for message in messages
        )

    # ── Looking ──

    async def browse(
        self, state: str | None = None, **conditions: Unpack[MessageFilter]
    ) -> AsyncIterator[BrowsedMessageOut]:
        """List messages without receiving them: all, or those in a state that meet the conditions.

        The conditions are `groups`, `headers`, `body`, `text`, `sent_from` and `sent_before`: see MessageFilter.
        """
        query = query_of(conditions)
        query["state"] = UNSET if state is None else MessageState(state)

        def ask(cursor: str) -> Any:
            return browse_messages(self.name, cursor=cursor or UNSET, **query)

        async for message in all_pages(self.transport, ask):
            yield message

    async def message(self, message: str | int) -> BrowsedMessageOut | DeadLetterOut:
        """Return one message or dead letter by id or offset."""
        return await self.transport.call(get_message(self.name, str(message)))

    async def delete_message(self, message: str | int) -> None:
        """Delete one message by id or offset, in any state."""
        await self.transport.call(delete_message(self.name, str(message)))

    async def purge(self) -> int:
        """Delete all messages, including those in flight; return their number.

        Dead letters are kept.
        """
        return (await self.transport.call(purge_queue(self.name))).purged

    # ── Dead letters ──

    async def dead_letters(
        self, reason: str | None = None, **conditions: Unpack[MessageFilter]
    ) -> AsyncIterator[DeadLetterOut]:
        """List the dead letters, oldest first: all, or those of a reason that meet conditions."""
        query = query_of(conditions)

        def ask(cursor: str) -> Any:
            return list_dead_letters(
                self.name, reason=reason or UNSET, cursor=cursor or UNSET, **query
            )

        async for letter in all_pages(self.transport, ask):
            yield letter

    async def death_reasons(self) -> list[DeathReasonOut]:
        """Count the dead letters by reason."""
        return (await self.transport.call(list_death_reasons(self.name))).items

    async def redrive(self, **which: Unpack[RedriveConfigParams]) -> Redriven | MoveOut:
        """Redrive dead letters: all, or those of a `reason`, a `group`, or `messages`.

        With `per_second`, the redrive runs in the background.
        """
        return await self.transport.call(replace(redrive_queue(self.name), json=which))

    async def move(self, destination: str | None = None, per_second: int | None = None) -> MoveOut:
        """Start moving messages of a dead-letter queue to their source queues, or to another one."""
        asked = {"destination": destination, "per_second": per_second}
        said = {name: value for name, value in asked.items() if value is not None}
        return await self.transport.call(replace(start_move(self.name), json=said))

    async def moves(self) -> list[MoveOut]:
        """List the moves from the queue, newest first."""
        return (await self.transport.call(list_moves(self.name))).items

    async def move_status(self, move: str) -> MoveOut:
        """Return the progress of a move."""
        return await self.transport.call(get_move(self.name, move))

    async def cancel_move(self, move: str) -> MoveOut:
        """Cancel a move."""
        call = change_move(self.name, move, body=MoveChange(state=MoveState.CANCELLED))
        return await self.transport.call(call)

    # ── Groups ──

    async def parked_groups(self) -> AsyncIterator[ParkedGroupOut]:
        """List the parked groups. They are not delivered until resumed."""

        def ask(cursor: str) -> Any:
            return list_parked_groups(self.name, cursor=cursor or UNSET)

        async for group in all_pages(self.transport, ask):
            yield group

    async def pause_group(self, group: str, reason: str = "paused") -> None:
        """Pause delivery of a group until it is resumed."""
        await self.transport.call(replace(pause_group(self.name, group), json={"reason": reason}))

    async def resume_group(self, group: str) -> int:
        """Resume delivery of a parked group; return the number of its messages that were parked."""
        return (await self.transport.call(resume_group(self.name, group))).resumed
