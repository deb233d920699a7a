"""Calls of a queue's scripts."""

import attrs

from storage.domain.limits import Limits
from storage.domain.queues.queue import Queue
from storage.redis.queues.script_args import queue_keys_of
from storage.redis.script_store import ScriptStore
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Argument
from storage.redis.transport.script_status import checked


@attrs.define(eq=False, slots=False)
class QueueScripts(ScriptStore):
    """Base of the stores whose verbs are one script call each.

    Calls raise LogNotReady where the log needs repair first.
    """

    _limits: Limits

    async def _read(self, name: str, queue: Queue, *arguments: Argument) -> Reply:
        return checked(await self._pipeline.read(name, queue_keys_of(queue), *arguments))

    async def _write(self, name: str, queue: Queue, *arguments: Argument) -> Reply:
        return checked(await self._pipeline.write(name, queue_keys_of(queue), *arguments))
