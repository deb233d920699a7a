"""In-memory consumer groups: members, assignment of shards, offsets and bookmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from millstream_client.testing.cursors import decode_cursor, encode_cursor
from millstream_client.testing.definitions import Clock, Defined, moment, seconds_of
from millstream_client.testing.problems import Problem, unsupported
from millstream_client.testing.streams import MemoryStream

FILTERS = frozenset({"key", "header", "body", "subject", "match"})
STALE = "The shard was reassigned or reset since this generation; nothing was committed."


@dataclass
class Member:
    """A member. `instance` identifies the process that reads in its name."""

    instance: int
    joined_at: float
    heartbeat_at: float
    shards: list[int] = field(default_factory=list)


class MemoryGroup(Defined):
    """A consumer group. Its configuration has the fields of the REST API."""

    def __init__(
        self,
        name: str,
        config: dict[str, Any],
        now: Clock,
        stream_of: Callable[[str], MemoryStream],
    ) -> None:
        super().__init__(name, config, now)
        self._stream_of = stream_of
        self._numbers = count(1)
        self._members: dict[str, Member] = {}
        self._committed: dict[int, int] = {}
        self._claims: dict[int, int] = {}
        self._bookmarks: dict[str, dict[str, Any]] = {}
        self._first = self._start(stream_of(config["stream"]))

    def _start(self, stream: MemoryStream) -> dict[int, int]:
        if self.config["start"] == "time":
            return stream.positions_at(seconds_of(self.config["start_time"]))
        return stream.ends() if self.config["start"] == "latest" else stream.starts()

    @property
    def stream(self) -> MemoryStream:
        """Stream that the group reads. Raises Problem."""
        return self._stream_of(self.config["stream"])

    @property
    def positions(self) -> dict[int, int]:
        """Next offset to read of each shard."""
        return {**self._first, **self._committed}

    # ── Members ──

    def fetch(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the next records of a member's shards; the first fetch joins the group."""
        name = query.get("member", "")
        if not name or self.config["kind"] != "ordered":
            raise unsupported("fetch without a member")
        if conditions := query.keys() & FILTERS:
            raise unsupported(f"fetch by {', '.join(sorted(conditions))}")
        member = self._joined(name, query.get("token", "") or query.get("after", ""))
        shards = [] if self.config["paused"] else member.shards
        positions = {shard: self.positions[shard] for shard in shards}
        if query.get("after"):
            read = decode_cursor(query["after"])[3]
            positions |= {int(shard): place[0] for shard, place in read.items()}
        records, gaps = self.stream.since(positions, int(query.get("limit", 1000)))
        places = {shard: [offset, self._claims[shard]] for shard, offset in positions.items()}
        return {
            "records": [record.shown() for record in records],
            "member": name,
            "generation": member.instance,
            "shards": shards,
            "token": encode_cursor(self.name, name, member.instance, places),
            "behind_seconds": 0,
            "tier": "hot",
            "gaps": gaps,
        }

    def _joined(self, name: str, token: str) -> Member:
        """Return a member; without a token it is a new process that replaces another."""
        now = self.now()
        self._remove_silent()
        member = self._members.get(name)
        if member is None or not token:
            member = self._members[name] = Member(next(self._numbers), now, now)
            self._assign()
        elif decode_cursor(token)[2] != member.instance:
            raise Problem("stale_generation", "Another process reads as this member.")
        member.heartbeat_at = now
        return member

    def _remove_silent(self) -> None:
        since = self.now() - self.config["session_timeout_seconds"]
        silent = [name for name, member in self._members.items() if member.heartbeat_at <= since]
        for name in silent:
            del self._members[name]
        if silent:
            self._assign()

    def _assign(self) -> None:
        """Distribute the shards; a shard that changes its owner has a new claim."""
        owners = {shard: name for name, member in self._members.items() for shard in member.shards}
        names = sorted(self._members)
        for member in self._members.values():
            member.shards = []
        for shard in self.positions if names else ():
            name = names[shard % len(names)]
            self._members[name].shards.append(shard)
            if owners.get(shard) != name:
                self._claims[shard] = next(self._numbers)

    def leave(self, name: str, generation: str | None) -> None:
        """Remove a member, unless another process has its name."""
        member = self._members.get(name)
        if member is None:
            raise Problem("member_unknown", f"Member {name!r} is unknown.")
        if generation is not None and int(generation) != member.instance:
            raise Problem("stale_generation", "Another process reads as this member.")
        del self._members[name]
        self._assign()

    # ── Offsets ──

    def commit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Commit a token, or the offsets of a simple group; one result for each shard.

        Raises the first rejection if there is nothing else.
        """
        if body.get("token"):
            results = self._commit_token(body["token"])
        else:
            results = [self._commit_offset(each) for each in body.get("offsets", [])]
        errors = [each["error"] for each in results if "error" in each]
        if errors and len(errors) == len(results):
            raise Problem(errors[0]["code"], errors[0]["detail"])
        return {"offsets": results, "failed": len(errors)}

    def _commit_token(self, token: str) -> list[dict[str, Any]]:
        _, name, instance, places = decode_cursor(token)
        member = self._members.get(name)
        if member is None:
            raise Problem("member_unknown", f"Member {name!r} is unknown.")
        if member.instance != instance:
            raise Problem("stale_generation", STALE)
        return [self._commit(int(shard), *place) for shard, place in places.items()]

    def _commit(self, shard: int, offset: int, claim: int) -> dict[str, Any]:
        if self._claims.get(shard) != claim:
            return {"shard": shard, "error": Problem("stale_generation", STALE).item}
        self._committed[shard] = offset
        return {"shard": shard, "offset": offset}

    def _commit_offset(self, position: Mapping[str, int]) -> dict[str, Any]:
        shard, offset = position["shard"], position["offset"]
        try:
            self._check_range(shard, offset)
        except Problem as problem:
            return {"shard": shard, "error": problem.item}
        self._committed[shard] = offset
        return {"shard": shard, "offset": offset}

    def _check_range(self, shard: int, offset: int) -> None:
        end = self.stream.shard(shard).next
        if offset > end:
            raise Problem("offset_out_of_range", f"The shard's next offset is {end}.")

    def reset(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Set the offsets to a place; members continue there."""
        chosen = body.get("shards")
        before = self.positions
        after = {
            shard: offset
            for shard, offset in self._places(body).items()
            if chosen is None or shard in chosen
        }
        if not body.get("dry_run"):
            self._committed.update(after)
            self._claims.update({shard: next(self._numbers) for shard in after})
        shards = [
            {"shard": shard, "before": before.get(shard), "after": offset, "expired": 0}
            for shard, offset in after.items()
        ]
        return {"dry_run": bool(body.get("dry_run")), "shards": shards}

    def _places(self, body: Mapping[str, Any]) -> dict[int, int]:
        if body["to"] in {"earliest", "latest"}:
            return self.stream.starts() if body["to"] == "earliest" else self.stream.ends()
        if body["to"] == "time":
            return self.stream.positions_at(seconds_of(body["time"]))
        if body["to"] == "bookmark":
            return _by_number(self._bookmark(body["bookmark"])["positions"])
        return _by_number(body["offsets"])

    # ── Bookmarks ──

    def put_bookmark(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Save the current positions, or others."""
        positions = body.get("positions") or {str(k): v for k, v in self.positions.items()}
        saved = {"name": name, "positions": positions, "created_at": moment(self.now())}
        self._bookmarks[name] = saved
        return saved

    def bookmarks(self) -> list[dict[str, Any]]:
        """Return the bookmarks by name."""
        return [self._bookmarks[name] for name in sorted(self._bookmarks)]

    def delete_bookmark(self, name: str) -> None:
        """Delete a bookmark. Raises Problem."""
        del self._bookmarks[self._bookmark(name)["name"]]

    def _bookmark(self, name: str) -> dict[str, Any]:
        if name not in self._bookmarks:
            raise Problem("bookmark_not_found", f"Bookmark {name!r} does not exist.")
        return self._bookmarks[name]

    # ── Looking ──

    def details(self) -> dict[str, Any]:
        """Return the configuration, the members, and the owner of each shard."""
        self._remove_silent()
        owners = self._owners()
        members = [
            {
                "member": name,
                "static": False,
                "disconnected": False,
                "joined_at": moment(member.joined_at),
                "heartbeat_at": moment(member.heartbeat_at),
                "assigned": member.shards,
                "revoked": [],
                "away": False,
            }
            for name, member in sorted(self._members.items())
        ]
        shards = [
            {
                "shard": shard,
                "member": owners.get(shard),
                "committed": self._committed.get(shard),
                "finished": False,
            }
            for shard in self.positions
        ]
        generation = max((member.instance for member in self._members.values()), default=0)
        return {**self.shown(), "generation": generation, "members": members, "shards": shards}

    def _owners(self) -> dict[int, str]:
        return {shard: name for name, member in self._members.items() for shard in member.shards}

    def lag(self) -> dict[str, Any]:
        """Return the lag in records and in time, by shard."""
        shards = [self._lag(shard, offset) for shard, offset in self.positions.items()]
        losses = [lag["loss_in_seconds"] for lag in shards if lag["loss_in_seconds"] is not None]
        return {
            "records": sum(lag["records"] for lag in shards),
            "lag_seconds": max((lag["lag_seconds"] for lag in shards), default=0.0),
            "loss_in_seconds": min(losses, default=None),
            "shards": shards,
        }

    def _lag(self, index: int, offset: int) -> dict[str, Any]:
        shard, retention = self.stream.shard(index), self.stream.config["retention_seconds"]
        waiting = shard.since(offset)
        seconds = self.now() - waiting[0].arrived_at if waiting else 0.0
        is_safe = not waiting or retention is None
        return {
            "shard": index,
            "member": self._owners().get(index),
            "committed": self._committed.get(index),
            "position": offset,
            "start": shard.start,
            "tip": shard.next,
            "records": len(waiting),
            "expired": max(0, shard.start - offset),
            "lag_seconds": seconds,
            "loss_in_seconds": None if is_safe else retention - seconds,
            "finished": False,
        }


def _by_number(positions: Mapping[str, int]) -> dict[int, int]:
    return {int(shard): offset for shard, offset in positions.items()}
