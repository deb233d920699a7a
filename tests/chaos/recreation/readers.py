"""Readers of a recreated stream by REST: by shard, by cursor, and as members of its group.

A reader begins at the oldest record, continues at its position, also after errors, and begins again only when its position is
rejected.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from tests.chaos.callers import Caller, Told
from tests.chaos.checking.positions import REJECTED
from tests.chaos.history import Gap, Kind, Operation, Outcome, Seen
from tests.chaos.recreation.stream import GROUP, SHARDS, STREAM, log_of, number_of
from tests.chaos.stream_protocol import committed, gaps_of, records_of, records_of_shards

PAGE = 200
_NOT_A_MEMBER = frozenset({"stale_generation", "member_unknown", "invalid_cursor"})
Place = tuple[int, int]
"""The number of a stream, and a shard of it."""


class Track:
    """Records read in each stream of the name, recorded in that stream's log."""

    def __init__(self, caller: Caller, group: str = "") -> None:
        self._caller = caller
        self._group = group
        self._gaps: dict[int, list[Gap]] = defaultdict(list)
        self.reached: dict[Place, int] = {}
        """Next offset by stream and shard."""

    def note(self, invoked: float, records: Iterable[Seen], gaps: Iterable[Gap] = ()) -> None:
        """Record what was read.

        `first` is where the last read of the shard ended, except for a group, whose other members read too. A gap belongs to the
        stream of the records behind it, unless that has been recreated since.
        """
        for told in gaps:
            self._gaps[told.shard].append(told)
        pages: dict[Place, list[Seen]] = defaultdict(list)
        for record in records:
            pages[number_of(record.value), record.shard].append(record)
        for place, page in pages.items():
            last = -1 if self._group else self.reached.get(place, -1)
            gaps = [gap for gap in self._gaps.pop(place[1], ()) if gap.next <= page[-1].offset]
            content = Told(tuple(page), tuple(gaps))
            self._caller.went_well(
                Kind.READ,
                log_of(place[0]),
                invoked,
                content,
                first=min(last, page[0].offset),
                group=self._group,
            )
            self.reached[place] = max(self.reached.get(place, 0), page[-1].offset + 1)


class RecreatedReader(Protocol):
    """A reader of the stream."""

    track: Track

    async def read(self) -> None:
        """Read on."""


async def _get(
    caller: Caller, path: str, query: dict[str, Any], group: str = ""
) -> tuple[Operation, Any]:
    """Return the operation, and the body of a successful response."""
    body: dict[str, Any] = {}

    def read(answer: Any) -> Told:
        body.update(answer)
        return Told()

    return await caller.rest(Kind.READ, STREAM, "GET", path, read, query=query, group=group), body


class ShardReader:
    """Read each shard at an offset, with the id of its stream."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._positions: dict[int, dict[str, Any]] = {}
        self.track = Track(caller)

    async def read(self) -> None:
        for shard in range(SHARDS):
            await self._read_shard(shard)

    async def _read_shard(self, shard: int) -> None:
        query = {"limit": PAGE, **self._positions.get(shard, {})}
        done, page = await _get(self._caller, f"/streams/{STREAM}/shards/{shard}/records", query)
        if done.code in REJECTED:
            self._positions.clear()
        elif done.outcome is Outcome.OK:
            gaps = gaps_of([page["gap"]] if "gap" in page else [], shard)
            self.track.note(done.invoked, records_of(page["records"], shard), gaps)
            self._positions[shard] = {
                "offset": page["next_offset"],
                "stream_id": page["stream_id"],
            }


class CursorReader:
    """Read all shards with a cursor."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._cursor = ""
        self.track = Track(caller)

    async def read(self) -> None:
        query = {"limit": PAGE, **({"cursor": self._cursor} if self._cursor else {})}
        done, page = await _get(self._caller, f"/streams/{STREAM}/records", query)
        if done.code in REJECTED:
            self._cursor = ""
        elif done.outcome is Outcome.OK:
            self.track.note(done.invoked, records_of_shards(page), gaps_of(page["gaps"]))
            self._cursor = page["next_cursor"]


class Member:
    """Read and commit as a member of the group.

    It commits the last token of a deleted group once more when it reads in the next one.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._token = ""
        self._last: tuple[int, str] = (0, "")
        """The stream and the token of the last records."""
        self.track = Track(caller, GROUP)

    async def read(self) -> None:
        query = {"member": self._caller.name, "limit": PAGE, "wait_seconds": 1}
        if self._token:
            query["token"] = self._token
        done, page = await _get(self._caller, f"/groups/{GROUP}/records", query, GROUP)
        if done.code in _NOT_A_MEMBER:
            self._token = ""
        elif done.outcome is Outcome.OK:
            self._token = page["token"]
            records = records_of_shards(page)
            self.track.note(done.invoked, records, gaps_of(page["gaps"]))
            if records:
                await self._commit_from(number_of(records[0].value))

    async def _commit_from(self, number: int) -> None:
        if 0 < self._last[0] < number:
            await self._commit(*self._last)
        self._last = number, self._token
        await self._commit(*self._last)

    async def _commit(self, number: int, token: str) -> None:
        await self._caller.rest(
            Kind.COMMIT,
            log_of(number),
            "POST",
            f"/groups/{GROUP}/commit",
            committed,
            body={"token": token},
            group=f"{GROUP}#{number}",
        )
