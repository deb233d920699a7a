"""Stream and group operations over the REST protocol."""

from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import Any

import httpx

from tests.chaos.callers import Caller, ItemRefused, Told
from tests.chaos.history import Gap, Kind, Operation, Seen

PAGE = 1000


class Streams:
    """Operations of writers, readers and members."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._tokens: dict[str, str] = {}  # of the last read as a member, by group

    async def append(self, stream: str, value: str, key: str) -> Operation:
        """Append to the stream, with the value as idempotency key."""

        def read(told: Any) -> Told:
            return Told((Seen(value=value, shard=told["shard"], offset=told["offset"]),))

        return await self.caller.rest(
            Kind.APPEND,
            stream,
            "POST",
            f"/streams/{stream}/records",
            read,
            body={"data": value, "key": key},
            headers={"idempotency-key": value},
            values=(value,),
            group=key,
        )

    async def produce(
        self, stream: str, shard: int, values: tuple[str, ...], sequence: int
    ) -> tuple[Operation, int]:
        """Append a batch to a shard, as a producer, from this sequence on.

        Also returns the shard to continue with: a child if the shard is closed.
        """
        records = [{"data": value} for value in values]
        producer = {"id": self.caller.name, "epoch": 0, "sequence": sequence}

        def read(told: Any) -> Told:
            return produced(told, values)

        operation = await self.caller.rest(
            Kind.APPEND,
            stream,
            "POST",
            f"/streams/{stream}/shards/{shard}/records",
            read,
            body={"records": records, "producer": producer},
            values=values,
        )
        if operation.code == "shard_closed":
            children = [c for c, parents in (await self.shards(stream)).items() if shard in parents]
            return operation, min(children, default=shard)
        return operation, shard

    async def read(self, stream: str, shard: int, offset: int) -> Operation:
        """Read a page of a shard."""
        path = f"/streams/{stream}/shards/{shard}/records"
        query = {"offset": offset, "limit": PAGE}

        def read(told: Any) -> Told:
            return _page(told, shard)

        return await self.caller.rest(
            Kind.READ, stream, "GET", path, read, query=query, first=offset
        )

    async def shards(self, stream: str) -> dict[int, tuple[int, ...]]:
        """Return the parents of each shard; empty if unavailable."""
        path = f"/streams/{stream}/shards"
        told = await self.caller.rest(Kind.SHARDS, stream, "GET", path, _shards)
        return {seen.shard: seen.parents for seen in told.seen}

    async def reshard(self, stream: str, **change: Any) -> Operation:
        """Split or merge."""
        path = f"/streams/{stream}/reshard"
        return await self.caller.rest(Kind.RESHARD, stream, "POST", path, _shards, body=change)

    async def begin(self, stream: str, shard: int, offset: int) -> int:
        """Return the start of a shard whose `offset` has expired, and record the gap."""
        invoked = self.caller.history.now()
        answer = await self.caller.http.get(f"/v1/streams/{stream}/shards")
        [start] = [
            item["start"]
            for item in answer.raise_for_status().json()["items"]
            if item["index"] == shard
        ]
        told = Told(gaps=(Gap(shard, offset, start, "expired"),))
        self.caller.went_well(Kind.READ, stream, invoked, told, first=offset)
        return int(start)

    async def merge_some(self, stream: str, chance: Random) -> Operation | None:
        """Merge two neighbouring shards."""
        ranges = await self._open_ranges(stream)
        pairs = [*pairwise(shard for _, shard in ranges)]
        return await self.reshard(stream, merge=[*chance.choice(pairs)]) if pairs else None

    async def _open_ranges(self, stream: str) -> list[tuple[int, int]]:
        """Open shards with the start of their ranges, in order."""
        try:
            answer = await self.caller.http.get(f"/v1/streams/{stream}/shards")
        except httpx.HTTPError:
            return []
        items = answer.json()["items"] if answer.is_success else []
        return sorted(
            (int(item["first_hash_key"]), item["index"]) for item in items if item["open"]
        )

    async def read_as(self, stream: str, group: str) -> tuple[Operation, str]:
        """Read as a member of a group; return the operation and the commit token."""
        token = ""

        def read(told: Any) -> Told:
            nonlocal token
            token = told["token"]
            return Told(
                records_of_shards(told),
                gaps_of(told["gaps"]),
                told["tier"],
                told["generation"],
                tuple(told["shards"]),
            )

        operation = await self.caller.rest(
            Kind.GROUP_READ,
            stream,
            "GET",
            f"/groups/{group}/records",
            read,
            query={
                "member": self.caller.name,
                "wait_seconds": 1,
                "limit": 100,
                "token": self._tokens.get(group, ""),
            },
            group=group,
        )
        self._tokens[group] = token  # after a failed read, a new instance begins
        return operation, token

    async def commit(self, read: Operation, token: str) -> Operation:
        """Commit what was read, with its token."""
        path, body = f"/groups/{read.group}/commit", {"token": token}
        about: dict[str, Any] = {
            "group": read.group,
            "generation": read.generation,
            "owns": read.owns,
        }
        return await self.caller.rest(
            Kind.COMMIT, read.log, "POST", path, committed, body=body, **about
        )

    async def leave(self, group: str) -> None:
        """Release this client's shards; not recorded."""
        with suppress(httpx.HTTPError):
            await self.caller.http.delete(f"/v1/groups/{group}/members/{self.caller.name}")

    async def standing(self, stream: str, group: str) -> Operation:
        """Query the committed offsets of a group."""
        path = f"/groups/{group}"
        return await self.caller.rest(Kind.STANDING, stream, "GET", path, _standing, group=group)


def produced(told: Any, values: tuple[str, ...]) -> Told:
    """Positions of a producer's records. Raises ItemRefused."""
    if error := next((record["error"] for record in told["records"] if "error" in record), None):
        raise ItemRefused(error["code"])
    return Told(
        tuple(
            Seen(value=value, shard=record["shard"], offset=record["offset"])
            for value, record in zip(values, told["records"], strict=True)
        )
    )


def _page(told: Any, shard: int) -> Told:
    gaps = [told["gap"]] if "gap" in told else []
    return Told(records_of(told["records"], shard), gaps_of(gaps, shard), told["tier"])


def records_of(told: Any, shard: int) -> tuple[Seen, ...]:
    """Records of a shard, in the format of REST and WebSocket."""
    return tuple(
        Seen(value=answer["data"], shard=shard, offset=answer["offset"]) for answer in told
    )


def records_of_shards(told: Any) -> tuple[Seen, ...]:
    """Records of several shards, in the format of REST."""
    return tuple(
        Seen(value=record["data"], shard=record["shard"], offset=record["offset"])
        for record in told["records"]
    )


def gaps_of(told: Any, shard: int = 0) -> tuple[Gap, ...]:
    """Gaps in the format of REST; `shard` is that of gaps without one."""
    return tuple(
        Gap(answer.get("shard", shard), answer["first"], answer["next"], answer["reason"])
        for answer in told
    )


def _shards(told: Any) -> Told:
    return Told(
        tuple(
            Seen(shard=item["index"], offset=item["next"], parents=tuple(item["parents"]))
            for item in told["items"]
        )
    )


def committed(told: Any) -> Told:
    """The committed shards; others in the same call may have been rejected."""
    done = [one for one in told["offsets"] if "error" not in one]
    return Told(tuple(Seen(shard=one["shard"], offset=one["offset"]) for one in done))


def _standing(told: Any) -> Told:
    return Told(
        tuple(
            Seen(shard=shard["shard"], offset=shard["committed"])
            for shard in told["shards"]
            if shard["committed"] is not None
        )
    )


def open_shards(shards: dict[int, tuple[int, ...]]) -> list[int]:
    """Shards without children."""
    parents = {parent for theirs in shards.values() for parent in theirs}
    return sorted(set(shards) - parents)
