"""The simulated server answers every command that scripts use as a real one does."""

import re
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from storage.redis.scripts import script, script_names
from tests.simulator.clock import START_MS
from tests.simulator.hot_store.keyspace import _COMMANDS, CommandError, Keyspace
from tests.simulator.hot_store.scripts import interpreter

_WORDS = st.sampled_from([b"a", b"b", b"c", b"dd"])
_NUMBERS = st.sampled_from([b"0", b"1", b"2", b"5", b"17", b"-3"])
_SCORES = st.sampled_from([b"0", b"1", b"1", b"2.5", b"-4", b"9007199254740993"])
_BOUNDS = st.sampled_from([b"-inf", b"+inf", b"0", b"(1", b"2", b"(2.5"])
_INDEXES = st.sampled_from([b"0", b"1", b"-1", b"-2", b"3"])
_IDS = st.sampled_from([b"1-1", b"1-2", b"2-0", b"3", b"5-5"])
_ID_BOUNDS = st.sampled_from([b"-", b"+", b"1", b"1-2", b"(1-1", b"4"])
_LEXES = st.sampled_from([b"-", b"+", b"[a", b"(b", b"[dd"])


_HASH, _LIST, _SET, _STREAM, _TEXT = b"hash", b"list", b"set", b"stream", b"text"
_NAMES = b"names"  # a sorted set of equal scores
_COMPARED: tuple[tuple[Any, ...], ...] = (
    (b"HSET", _HASH, _WORDS, _NUMBERS),
    (b"HSETNX", _HASH, _WORDS, _NUMBERS),
    (b"HGET", _HASH, _WORDS),
    (b"HMGET", _HASH, _WORDS, _WORDS),
    (b"HLEN", _HASH),
    (b"HEXISTS", _HASH, _WORDS),
    (b"HDEL", _HASH, _WORDS, _WORDS),
    (b"HINCRBY", _HASH, b"count", _NUMBERS),
    (b"RPUSH", _LIST, _WORDS, _WORDS),
    (b"LPUSH", _LIST, _WORDS, _WORDS),
    (b"LPOP", _LIST),
    (b"LPOP", _LIST, st.sampled_from([b"1", b"3"])),
    (b"LLEN", _LIST),
    (b"LINDEX", _LIST, _INDEXES),
    (b"LRANGE", _LIST, _INDEXES, _INDEXES),
    (b"LREM", _LIST, st.sampled_from([b"0", b"1", b"-1", b"2"]), _WORDS),
    (b"LTRIM", _LIST, _INDEXES, _INDEXES),
    (b"ZADD", _SET, _SCORES, _WORDS),
    (b"ZADD", _SET, b"NX", _SCORES, _WORDS),
    (b"ZADD", _SET, b"GT", _SCORES, _WORDS),
    (b"ZADD", _SET, _SCORES, _WORDS, _SCORES, _WORDS),
    (b"ZREM", _SET, _WORDS, _WORDS),
    (b"ZCARD", _SET),
    (b"ZSCORE", _SET, _WORDS),
    (b"ZMSCORE", _SET, _WORDS, _WORDS),
    (b"ZCOUNT", _SET, _BOUNDS, _BOUNDS),
    (b"ZRANGE", _SET, _INDEXES, _INDEXES),
    (b"ZRANGE", _SET, _INDEXES, _INDEXES, b"WITHSCORES"),
    (b"ZRANGEBYSCORE", _SET, _BOUNDS, _BOUNDS),
    (b"ZRANGEBYSCORE", _SET, _BOUNDS, _BOUNDS, b"WITHSCORES", b"LIMIT", b"0", b"2"),
    (b"ZADD", _NAMES, b"0", _WORDS),
    (b"ZRANGEBYLEX", _NAMES, _LEXES, _LEXES, b"LIMIT", b"0", b"2"),  # specified for equal scores
    (b"ZPOPMIN", _SET),
    (b"ZREMRANGEBYSCORE", _SET, _BOUNDS, _BOUNDS),
    (b"XADD", _STREAM, _IDS, b"d", _WORDS),
    (b"XRANGE", _STREAM, _ID_BOUNDS, _ID_BOUNDS),
    (b"XRANGE", _STREAM, _ID_BOUNDS, _ID_BOUNDS, b"COUNT", b"1"),
    (b"XREVRANGE", _STREAM, _ID_BOUNDS, _ID_BOUNDS, b"COUNT", b"2"),
    (b"XLEN", _STREAM),
    (b"XDEL", _STREAM, _IDS, _IDS),
    (b"XTRIM", _STREAM, b"MINID", _IDS),
    (b"SET", _TEXT, _WORDS),
    (b"SET", _TEXT, _WORDS, b"NX"),
    (b"SETNX", _TEXT, _WORDS),
    (b"APPEND", _TEXT, _WORDS),
    (b"GET", _TEXT),
    (b"MGET", _TEXT, b"missing"),
    (b"EXISTS", _HASH, _SET, _STREAM),
    (b"UNLINK", st.sampled_from([_HASH, _LIST, _SET, _TEXT])),
    (b"RENAME", st.sampled_from([_TEXT, b"missing"]), _TEXT),
    (b"PEXPIRE", st.sampled_from([_HASH, b"missing"]), b"100000"),
    (b"HGETALL", _HASH),
    (b"HKEYS", _HASH),
    (b"HVALS", _HASH),
    (b"HSCAN", _HASH),
    (b"XADD", _STREAM, b"MAXLEN", b"2", _IDS, b"d", _WORDS),
    (b"SET", _TEXT, _WORDS, b"PX", b"100000"),
)
"""Commands, with their arguments or the values of which each is chosen."""
_COMPARED_ALONE = {b"TIME", b"PUBLISH"}


def _calls(row: tuple[Any, ...]) -> "st.SearchStrategy[tuple[bytes, ...]]":
    return st.tuples(
        *(word if isinstance(word, st.SearchStrategy) else st.just(word) for word in row)
    )


def _answer(run: Callable[..., Any], name: bytes, *arguments: bytes) -> Any:
    """Run a command; sort a reply that has no order, and read a scan to its end."""
    if name == b"HSCAN":
        return sorted(_scanned(run, *arguments))
    reply = run(name, *arguments)
    if name == b"HGETALL":
        return sorted(zip(reply[::2], reply[1::2], strict=True))
    return sorted(reply) if name in (b"HKEYS", b"HVALS") else reply


def _scanned(run: Callable[..., Any], key: bytes) -> Iterator[tuple[bytes, bytes]]:
    cursor = b"0"
    while True:
        cursor, page = run(b"HSCAN", key, cursor, b"COUNT", b"2")
        yield from zip(page[::2], page[1::2], strict=True)
        if cursor == b"0":
            return


@pytest.fixture(scope="module")
def server(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url, protocol=2) as client:
        client.response_callbacks.clear()
        yield client


@given(calls=st.lists(st.sampled_from(_COMPARED).flatmap(_calls), max_size=40))
def test_commands_answer_as_a_real_server(server, calls):
    server.flushall()
    keyspace = Keyspace(lambda: START_MS)

    def run(name: bytes, *arguments: bytes) -> Any:
        return keyspace.run(name, arguments)

    for call in calls:
        try:
            expected = _answer(server.execute_command, *call)
        except redis.ResponseError as error:
            with pytest.raises(CommandError, match=re.escape(str(error)[:20])):
                _answer(run, *call)
        else:
            assert _answer(run, *call) == expected, call


def test_every_simulated_command_is_compared():
    assert {row[0] for row in _COMPARED} | _COMPARED_ALONE == _COMMANDS.keys()


def test_clock_is_in_seconds_and_microseconds(server):
    begun_ms = time.time_ns() // 1_000_000
    seconds, micros = server.execute_command("TIME")

    answer = Keyspace(lambda: begun_ms).run(b"TIME", [])

    assert answer == [b"%d" % (begun_ms // 1000), b"%d" % (begun_ms % 1000 * 1000)]
    assert 0 <= int(seconds) * 1000 + int(micros) // 1000 - begun_ms < 60_000


def test_published_message_reaches_subscribers_as_sent(server):
    keyspace = Keyspace(lambda: START_MS)
    assert keyspace.run(b"PUBLISH", [b"channel", b"text"]) == server.publish("channel", "text")
    with server.pubsub() as subscription:
        subscription.subscribe("channel")
        subscription.get_message(timeout=10)

        server.publish("channel", "text")
        message = subscription.get_message(timeout=10)

    assert message is not None
    assert keyspace.published == [(message["channel"], message["data"])]


def test_scan_returns_what_is_there_throughout():
    keyspace = Keyspace(lambda: START_MS)
    fields = [b"%d" % number for number in range(40)]
    for field in fields:
        keyspace.run(b"HSET", [b"hash", field, b""])

    def run(name: bytes, *arguments: bytes) -> Any:
        reply = keyspace.run(name, arguments)
        keyspace.run(b"HDEL", [b"hash", reply[1][0]])
        keyspace.run(b"HSET", [b"hash", b"new %s" % reply[0], b""])
        return reply

    assert {field for field, _ in _scanned(run, b"hash")} >= {*fields}


def test_every_command_of_the_scripts_is_simulated():
    texts = "".join(script(name).text for name in script_names())
    used = {word.encode() for word in re.findall(r"redis\.call\('([A-Z]+)'", texts)}

    assert used <= _COMMANDS.keys()


@pytest.mark.parametrize("seed", range(20))
def test_packed_values_equal_those_of_a_real_server(server, seed):
    """Scripts compare packed records byte by byte; they pack whole numbers only."""
    chance = Random(seed)
    values = [chance.choice([0, 1, -1, 127, 128, 255, 65_536, 2**40, -(2**33)]) for _ in "1234"]
    words = [chance.choice(["", "a", "x" * 40, "y" * 300]) for _ in "123"]
    items = ", ".join([*map(repr, values), *(f"'{word}'" for word in words)])
    text = f"return cmsgpack.pack({{ {items}, {{}}, {{ a = 1 }}, true, false }}) .. cmsgpack.pack(7, 'b')"

    sha = interpreter().compile(text.encode())

    assert interpreter().run(Keyspace(lambda: START_MS), sha, [], []) == server.eval(text, 0)
