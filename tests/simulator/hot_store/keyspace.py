"""Keys of a simulated server, and the commands that the product's scripts use on them.

Semantics are those of Valkey 7.2 and Redis 6.2; `tests/simulator/test_keyspace.py` compares every command with a real
server. Replies: int, bytes, None, or a list of these.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from math import inf
from typing import Any
from zlib import crc32

Reply = Any

_SCAN_PAGE = 3

_LOWEST, _HIGHEST = (0, 0), (2**64 - 1, 2**64 - 1)


class CommandError(Exception):
    """Error reply of the server; the first word is its code."""


class SortedSet:
    """Members by score, then by bytes."""

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.order: list[tuple[float, bytes]] = []

    def __len__(self) -> int:
        return len(self.scores)

    def add(self, member: bytes, score: float) -> None:
        self.remove(member)
        self.scores[member] = score
        insort(self.order, (score, member))

    def remove(self, member: bytes) -> bool:
        score = self.scores.pop(member, None)
        if score is None:
            return False
        del self.order[bisect_left(self.order, (score, member))]
        return True

    def between(self, low: bytes, high: bytes) -> list[tuple[float, bytes]]:
        """Return the entries between two score bounds, such as `-inf` and `(5`."""
        (least, least_open), (most, most_open) = _score_bound(low), _score_bound(high)
        return [
            entry
            for entry in self.order[
                bisect_left(self.order, (least, b"")) : bisect_right(self.order, most, key=_score)
            ]
            if not (least_open and entry[0] == least) and not (most_open and entry[0] == most)
        ]


def _score(entry: tuple[float, bytes]) -> float:
    return entry[0]


def _score_bound(bound: bytes) -> tuple[float, bool]:
    is_open = bound.startswith(b"(")
    word = bound[1:] if is_open else bound
    return float(word), is_open


class Stream:
    """Entries by id, in ascending order."""

    def __init__(self) -> None:
        self.ids: list[tuple[int, int]] = []
        self.entries: dict[tuple[int, int], list[bytes]] = {}
        self.last: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, entry_id: tuple[int, int], fields: list[bytes]) -> None:
        if entry_id <= self.last:
            raise CommandError(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            )
        self.last = entry_id
        self.ids.append(entry_id)
        self.entries[entry_id] = fields

    def remove(self, entry_id: tuple[int, int]) -> bool:
        if self.entries.pop(entry_id, None) is None:
            return False
        del self.ids[bisect_left(self.ids, entry_id)]
        return True

    def trim(self, count: int) -> int:
        """Remove the first entries."""
        for entry_id in self.ids[:count]:
            del self.entries[entry_id]
        del self.ids[:count]
        return count


class Keyspace:
    """The data of one server. `now_ms` is its clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.published: list[tuple[bytes, bytes]] = []
        """Messages of PUBLISH that were not passed on yet."""
        self._values: dict[bytes, Any] = {}
        self._expires: dict[bytes, int] = {}

    def copy(self) -> "tuple[dict[bytes, Any], dict[bytes, int]]":
        """Return a snapshot for `restore`."""
        return deepcopy((self._values, self._expires))

    def restore(self, snapshot: "tuple[dict[bytes, Any], dict[bytes, int]]") -> None:
        """Replace all data by an earlier snapshot."""
        self._values, self._expires = deepcopy(snapshot)

    def run(self, name: bytes, arguments: Sequence[bytes]) -> Reply:
        """Run a command. Raises CommandError."""
        command = _COMMANDS.get(name.upper())
        if command is None:
            raise CommandError(f"ERR unknown command '{name.decode()}'")
        return command(self, *arguments)

    def _get(self, key: bytes, kind: type[Any]) -> Any:
        if self._expires and self._expires.get(key, inf) <= self.now_ms():
            self._delete(key)
        value = self._values.get(key)
        if value is not None and not isinstance(value, kind):
            raise CommandError("WRONGTYPE Operation against a key holding the wrong kind of value")
        return value

    def _make(self, key: bytes, kind: type[Any]) -> Any:
        value = self._get(key, kind)
        if value is None:
            value = self._values[key] = kind()
        return value

    def _delete(self, key: bytes) -> bool:
        self._expires.pop(key, None)
        return self._values.pop(key, None) is not None

    def _drop_empty(self, key: bytes, value: Any) -> None:
        if not value and not isinstance(value, Stream):
            self._delete(key)

    # Keys and strings

    def exists(self, *keys: bytes) -> int:
        return sum(self._get(key, object) is not None for key in keys)

    def unlink(self, *keys: bytes) -> int:
        return sum(self._get(key, object) is not None and self._delete(key) for key in keys)

    def rename(self, key: bytes, new: bytes) -> bytes:
        value = self._get(key, object)
        if value is None:
            raise CommandError("ERR no such key")
        expires = self._expires.get(key)
        self._delete(key)
        self._delete(new)
        self._values[new] = value
        if expires is not None:
            self._expires[new] = expires
        return b"OK"

    def pexpire(self, key: bytes, ms: bytes) -> int:
        if self._get(key, object) is None:
            return 0
        self._expires[key] = self.now_ms() + int(ms)
        return 1

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._get(key, bytes)
        return value

    def mget(self, *keys: bytes) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def set(self, key: bytes, value: bytes, *options: bytes) -> bytes | None:
        words = [option.upper() for option in options]
        if b"NX" in words and self._get(key, object) is not None:
            return None
        self._delete(key)
        self._values[key] = value
        for unit, factor in ((b"EX", 1000), (b"PX", 1)):
            if unit in words:
                self._expires[key] = self.now_ms() + factor * int(options[words.index(unit) + 1])
        return b"OK"

    def setnx(self, key: bytes, value: bytes) -> int:
        return 0 if self.set(key, value, b"NX") is None else 1

    def append(self, key: bytes, value: bytes) -> int:
        self._values[key] = (self.get(key) or b"") + value
        return len(self._values[key])

    def time(self) -> list[bytes]:
        seconds, ms = divmod(self.now_ms(), 1000)
        return [b"%d" % seconds, b"%d" % (ms * 1000)]

    def publish(self, channel: bytes, message: bytes) -> int:
        self.published.append((channel, message))
        return 0

    # Hashes

    def hset(self, key: bytes, *pairs: bytes) -> int:
        fields = self._make(key, dict)
        before = len(fields)
        fields.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(fields) - before

    def hsetnx(self, key: bytes, field: bytes, value: bytes) -> int:
        return 0 if self.hexists(key, field) else self.hset(key, field, value)

    def hget(self, key: bytes, field: bytes) -> bytes | None:
        value: bytes | None = (self._get(key, dict) or {}).get(field)
        return value

    def hmget(self, key: bytes, *fields: bytes) -> list[bytes | None]:
        values = self._get(key, dict) or {}
        return [values.get(field) for field in fields]

    def hgetall(self, key: bytes) -> list[bytes]:
        return [word for pair in (self._get(key, dict) or {}).items() for word in pair]

    def hkeys(self, key: bytes) -> list[bytes]:
        return [*(self._get(key, dict) or {})]

    def hvals(self, key: bytes) -> list[bytes]:
        return [*(self._get(key, dict) or {}).values()]

    def hlen(self, key: bytes) -> int:
        return len(self._get(key, dict) or {})

    def hexists(self, key: bytes, field: bytes) -> int:
        return int(field in (self._get(key, dict) or {}))

    def hdel(self, key: bytes, *fields: bytes) -> int:
        values = self._get(key, dict) or {}
        removed = sum(values.pop(field, None) is not None for field in fields)
        self._drop_empty(key, values)
        return removed

    def hincrby(self, key: bytes, field: bytes, by: bytes) -> int:
        fields = self._make(key, dict)
        number = int(fields.get(field, 0)) + int(by)
        fields[field] = b"%d" % number
        return number

    def hscan(self, key: bytes, cursor: bytes, *_: bytes) -> list[Any]:
        """Return a page in the order of checksums, which adding and removing does not change.

        COUNT is a hint, so a page may be short; the scan of a small hash then resumes, too.
        """
        values = self._get(key, dict) or {}
        places = sorted((crc32(field) + 1, field) for field in values)
        left = places[bisect_left(places, (int(cursor), b"")) :]
        page, rest = left[:_SCAN_PAGE], left[_SCAN_PAGE:]
        pairs = [word for _, field in page for word in (field, values[field])]
        return [b"%d" % rest[0][0] if rest else b"0", pairs]

    # Lists

    def rpush(self, key: bytes, *values: bytes) -> int:
        items: list[bytes] = self._make(key, list)
        items.extend(values)
        return len(items)

    def lpush(self, key: bytes, *values: bytes) -> int:
        items: list[bytes] = self._make(key, list)
        items[:0] = reversed(values)
        return len(items)

    def lpop(self, key: bytes, count: bytes | None = None) -> Reply:
        items = self._get(key, list)
        if not items:
            return None
        number = 1 if count is None else int(count)
        popped = items[:number]
        del items[:number]
        self._drop_empty(key, items)
        return popped[0] if count is None else popped

    def llen(self, key: bytes) -> int:
        return len(self._get(key, list) or ())

    def lindex(self, key: bytes, index: bytes) -> bytes | None:
        items, nth = self._get(key, list) or [], int(index)
        return items[nth] if -len(items) <= nth < len(items) else None

    def lrange(self, key: bytes, first: bytes, last: bytes) -> list[bytes]:
        return _slice(self._get(key, list) or [], int(first), int(last))

    def lrem(self, key: bytes, count: bytes, value: bytes) -> int:
        items: list[bytes] = self._get(key, list) or []
        places = [nth for nth, item in enumerate(items) if item == value]
        wanted = int(count)
        places = places[wanted:] if wanted < 0 else places[: wanted or None]
        for nth in reversed(places):
            del items[nth]
        self._drop_empty(key, items)
        return len(places)

    def ltrim(self, key: bytes, first: bytes, last: bytes) -> bytes:
        items: list[bytes] = self._get(key, list) or []
        items[:] = _slice(items, int(first), int(last))
        self._drop_empty(key, items)
        return b"OK"

    # Sorted sets

    def zadd(self, key: bytes, *arguments: bytes) -> int:
        option = arguments[0].upper()
        pairs = arguments[1:] if option in (b"NX", b"GT") else arguments
        members = self._make(key, SortedSet)
        before = len(members)
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            present = members.scores.get(member)
            if (
                present is None
                or option not in (b"NX", b"GT")
                or (option == b"GT" and float(score) > present)
            ):
                members.add(member, float(score))
        return len(members) - before

    def _members(self, key: bytes) -> SortedSet:
        return self._get(key, SortedSet) or SortedSet()

    def zrem(self, key: bytes, *gone: bytes) -> int:
        members = self._members(key)
        removed = sum(members.remove(member) for member in gone)
        self._drop_empty(key, members)
        return removed

    def zcard(self, key: bytes) -> int:
        return len(self._members(key))

    def zscore(self, key: bytes, member: bytes) -> bytes | None:
        score = self._members(key).scores.get(member)
        return None if score is None else _number(score)

    def zmscore(self, key: bytes, *members: bytes) -> list[bytes | None]:
        return [self.zscore(key, member) for member in members]

    def zcount(self, key: bytes, low: bytes, high: bytes) -> int:
        return len(self._members(key).between(low, high))

    def zrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> list[bytes]:
        return _flat(_slice(self._members(key).order, int(first), int(last)), options)

    def zrangebyscore(self, key: bytes, low: bytes, high: bytes, *options: bytes) -> list[bytes]:
        return _flat(_limited(self._members(key).between(low, high), options), options)

    def zrangebylex(self, key: bytes, low: bytes, high: bytes, *options: bytes) -> list[bytes]:
        entries = [entry for entry in self._members(key).order if _in_lex(entry[1], low, high)]
        return _flat(_limited(entries, options), options)

    def zpopmin(self, key: bytes, count: bytes = b"1") -> list[bytes]:
        members = self._members(key)
        entries = members.order[: int(count)]
        for _, member in entries:
            members.remove(member)
        self._drop_empty(key, members)
        return _flat(entries, (b"WITHSCORES",))

    def zremrangebyscore(self, key: bytes, low: bytes, high: bytes) -> int:
        entries = self._members(key).between(low, high)
        return self.zrem(key, *(member for _, member in entries))

    # Streams

    def xadd(self, key: bytes, *arguments: bytes) -> bytes:
        """Add an entry; `MAXLEN ~` trims to the length when it is exceeded twice over."""
        words, most, factor = [*arguments], None, 1
        if words[0].upper() == b"MAXLEN":
            factor = 2 if words[1] == b"~" else 1
            trimming = [word for word in words[:3] if word not in (b"~", b"=")]
            most, words = int(trimming[1]), words[words.index(trimming[1]) + 1 :]
        stream = self._make(key, Stream)
        entry_id = self._next_id(stream) if words[0] == b"*" else _id(words[0], 0)
        stream.add(entry_id, words[1:])
        if most is not None and len(stream) > factor * most:
            stream.trim(len(stream) - most)
        return _id_of(entry_id)

    def _next_id(self, stream: Stream) -> tuple[int, int]:
        now_ms, (last_ms, last) = self.now_ms(), stream.last
        return (now_ms, 0) if now_ms > last_ms else (last_ms, last + 1)

    def _entries(self, key: bytes, low: bytes, high: bytes) -> tuple[Stream, list[tuple[int, int]]]:
        stream = self._get(key, Stream) or Stream()
        first, last = _id_bound(low, 0), _id_bound(high, 2**64 - 1)
        return stream, stream.ids[bisect_left(stream.ids, first) : bisect_right(stream.ids, last)]

    def xrange(self, key: bytes, low: bytes, high: bytes, *options: bytes) -> list[Any]:
        stream, ids = self._entries(key, low, high)
        return [[_id_of(one), [*stream.entries[one]]] for one in ids[: _count(options)]]

    def xrevrange(self, key: bytes, high: bytes, low: bytes, *options: bytes) -> list[Any]:
        stream, ids = self._entries(key, low, high)
        return [[_id_of(one), [*stream.entries[one]]] for one in ids[::-1][: _count(options)]]

    def xlen(self, key: bytes) -> int:
        return len(self._get(key, Stream) or ())

    def xdel(self, key: bytes, *ids: bytes) -> int:
        stream = self._get(key, Stream) or Stream()
        return sum(stream.remove(_id(one, 0)) for one in ids)

    def xtrim(self, key: bytes, *arguments: bytes) -> int:
        """Trim exactly, also where `~` allows more to stay, up to LIMIT entries."""
        words = [word for word in arguments if word not in (b"~", b"=")]
        stream = self._get(key, Stream) or Stream()
        if words[0].upper() == b"MAXLEN":
            count = max(0, len(stream) - int(words[1]))
        else:
            count = bisect_left(stream.ids, _id(words[1], 0))
        most = int(words[3]) if len(words) > 2 else count
        return stream.trim(min(count, most))


def _slice(items: Sequence[Any], first: int, last: int) -> list[Any]:
    begin = max(0, first + len(items)) if first < 0 else first
    end = last + len(items) if last < 0 else last
    return [*items[begin : end + 1]]


def _limited(entries: list[tuple[float, bytes]], options: Sequence[bytes]) -> list[Any]:
    words = [option.upper() for option in options]
    if b"LIMIT" not in words:
        return entries
    place = words.index(b"LIMIT")
    begin, count = int(options[place + 1]), int(options[place + 2])
    return entries[begin:] if count < 0 else entries[begin : begin + count]


def _flat(entries: Sequence[tuple[float, bytes]], options: Sequence[bytes]) -> list[bytes]:
    if any(option.upper() == b"WITHSCORES" for option in options):
        return [word for score, member in entries for word in (member, _number(score))]
    return [member for _, member in entries]


def _in_lex(member: bytes, low: bytes, high: bytes) -> bool:
    if low == b"+" or high == b"-":
        return False
    after = low == b"-" or (member > low[1:] if low.startswith(b"(") else member >= low[1:])
    before = high == b"+" or (member < high[1:] if high.startswith(b"(") else member <= high[1:])
    return after and before


def _number(score: float) -> bytes:
    if score == int(score) and abs(score) < 1e17:
        return b"%d" % int(score)
    return f"{score:.17g}".encode()


def _id(word: bytes, sequence: int) -> tuple[int, int]:
    ms, dash, number = word.partition(b"-")
    return int(ms), int(number) if dash else sequence


def _id_bound(word: bytes, sequence: int) -> tuple[int, int]:
    if word in (b"-", b"+"):
        return _LOWEST if word == b"-" else _HIGHEST
    if word.startswith(b"("):
        ms, number = _id(word[1:], sequence)
        return (ms, number + 1) if sequence == 0 else (ms, number - 1)
    return _id(word, sequence)


def _id_of(entry_id: tuple[int, int]) -> bytes:
    return b"%d-%d" % entry_id


def _count(options: Sequence[bytes]) -> int | None:
    return int(options[1]) if options else None


def _commands() -> Iterator[tuple[bytes, Callable[..., Reply]]]:
    for name, method in vars(Keyspace).items():
        if not name.startswith("_") and name not in ("copy", "restore", "run"):
            yield name.upper().encode(), method


_COMMANDS = dict(_commands())
