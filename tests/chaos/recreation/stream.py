"""A stream that is deleted and recreated, and the one writer that knows which stream it is.

    delete ──▶ the writer's next append is rejected ──▶ stream and group are created ──▶ it appends from sequence 0

Streams of the name are numbered, and each record carries the number of its stream: in the history, `recreated#3` is the log
of the third one. An append that was delayed until another stream had the name is rejected there, because the producer is
unknown and its sequence does not begin at 0.
"""

import asyncio
from random import Random
from typing import Any

from tests.chaos.callers import Caller, Told
from tests.chaos.history import Gap, Kind, Operation, Outcome, Seen
from tests.chaos.requests import send_until_done
from tests.chaos.stage import PAUSE_S, SESSION_S
from tests.chaos.stream_protocol import produced

STREAM, GROUP = "recreated", "recreated-readers"
SHARDS = 2
GONE = frozenset({"stream_not_found", "shard_not_found", "sequence_out_of_order"})
"""Codes of a rejected append to a stream that is not the writer's."""
_ABSENT = frozenset({204, 404})
_PRESENT = frozenset({200, 201})


def log_of(number: int) -> str:
    """The name of that stream in the history."""
    return f"{STREAM}#{number}"


def number_of(value: str) -> int:
    """The number of the stream that a record was appended to."""
    return int(value.partition(":")[0])


class Writer:
    """Append record by record, and create the stream and its group when they are gone."""

    def __init__(self, caller: Caller, chance: Random) -> None:
        self._caller = caller
        self._chance = chance
        self._number = 0
        self._sequences = [0] * SHARDS

    async def write(self) -> bool:
        """Append a record, or repeat one with an unknown outcome; return whether it was accepted.

        Creates the stream if it is gone.
        """
        if not self._number:
            await self._create()
        shard = self._chance.randrange(SHARDS)
        done = await self._append(shard)
        if done.code in GONE:
            await self._create()
        if done.outcome is not Outcome.OK:
            return False
        self._note_start(done.seen[0])
        self._sequences[shard] += 1
        return True

    async def _append(self, shard: int) -> Operation:
        sequence = self._sequences[shard]
        value = f"{self._number}:{shard}:{sequence}"
        producer = {"id": f"writer-{self._number}", "epoch": 0, "sequence": sequence}

        def read(answer: Any) -> Told:
            return produced(answer, (value,))

        return await self._caller.rest(
            Kind.APPEND,
            log_of(self._number),
            "POST",
            f"/streams/{STREAM}/shards/{shard}/records",
            read,
            body={"records": [{"data": value}], "producer": producer},
            values=(value,),
        )

    def _note_start(self, first: Seen) -> None:
        """Record the gap before a log that does not begin at 0.

        It was being created when a response was lost.
        """
        if not self._sequences[first.shard] and first.offset:
            gap = Gap(first.shard, 0, first.offset, "expired")
            log, now = log_of(self._number), self._caller.history.now()
            self._caller.went_well(Kind.READ, log, now, Told(gaps=(gap,)))

    async def _create(self) -> None:
        if self._number:
            now = self._caller.history.now()
            self._caller.went_well(Kind.DELETED, log_of(self._number), now, Told())
        self._number += 1
        self._sequences = [0] * SHARDS
        group = {"stream": STREAM, "session_timeout_seconds": SESSION_S}
        while True:
            await self._put(f"/streams/{STREAM}", {"shards": SHARDS, "archive": False})
            if await self._put(f"/groups/{GROUP}", group) in _PRESENT:
                return
            await asyncio.sleep(5 * PAUSE_S)  # a delayed delete

    async def _put(self, path: str, body: Any) -> int:
        answer = await send_until_done(self._caller.http, "PUT", path, body, {*_PRESENT, 404})
        return answer.status_code


async def delete_stream(caller: Caller) -> None:
    """Delete the stream, with its group."""
    await send_until_done(caller.http, "DELETE", f"/streams/{STREAM}", None, _ABSENT)
