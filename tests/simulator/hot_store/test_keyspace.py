"""The simulated server answers every command that scripts use as a real one does."""

import re
from collections.abc import Iterator
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


def _call(name: bytes, *arguments: Any) -> "st.SearchStrategy[list[bytes]]":
    fixed = [one if isinstance(one, st.SearchStrategy) else st.just(one) for one in arguments]
    return st.tuples(st.just(name), *fixed).map(list)


_HASH, _LIST, _SET, _STREAM, _TEXT = b"hash", b"list", b"set", b"stream", b"text"
_CALLS = st.one_of(
    _call(b"HSET", _HASH, _WORDS, _NUMBERS),
    _call(b"HGET", _HASH, _WORDS),
    _call(b"HMGET", _HASH, _WORDS, _WORDS),
    _call(b"HLEN", _HASH),
    _call(b"HEXISTS", _HASH, _WORDS),
    _call(b"HDEL", _HASH, _WORDS, _WORDS),
    _call(b"HINCRBY", _HASH, b"count", _NUMBERS),
    _call(b"RPUSH", _LIST, _WORDS, _WORDS),
    _call(b"LPUSH", _LIST, _WORDS, _WORDS),
    _call(b"LPOP", _LIST),
    _call(b"LPOP", _LIST, st.sampled_from([b"1", b"3"])),
    _call(b"LLEN", _LIST),
    _call(b"LINDEX", _LIST, _INDEXES),
    _call(b"LRANGE", _LIST, _INDEXES, _INDEXES),
    _call(b"LREM", _LIST, st.sampled_from([b"0", b"1", b"-1", b"2"]), _WORDS),
    _call(b"LTRIM", _LIST, _INDEXES, _INDEXES),
    _call(b"ZADD", _SET, _SCORES, _WORDS),
    _call(b"ZADD", _SET, b"NX", _SCORES, _WORDS),
    _call(b"ZADD", _SET, _SCORES, _WORDS, _SCORES, _WORDS),
    _call(b"ZREM", _SET, _WORDS, _WORDS),
    _call(b"ZCARD", _SET),
    _call(b"ZSCORE", _SET, _WORDS),
    _call(b"ZMSCORE", _SET, _WORDS, _WORDS),
    _call(b"ZCOUNT", _SET, _BOUNDS, _BOUNDS),
    _call(b"ZRANGE", _SET, _INDEXES, _INDEXES),
    _call(b"ZRANGE", _SET, _INDEXES, _INDEXES, b"WITHSCORES"),
    _call(b"ZRANGEBYSCORE", _SET, _BOUNDS, _BOUNDS),
    _call(b"ZRANGEBYSCORE", _SET, _BOUNDS, _BOUNDS, b"WITHSCORES", b"LIMIT", b"0", b"2"),
    _call(b"ZRANGEBYLEX", _SET, _LEXES, _LEXES, b"LIMIT", b"0", b"2"),
    _call(b"ZPOPMIN", _SET),
    _call(b"ZREMRANGEBYSCORE", _SET, _BOUNDS, _BOUNDS),
    _call(b"XADD", _STREAM, _IDS, b"d", _WORDS),
    _call(b"XRANGE", _STREAM, _ID_BOUNDS, _ID_BOUNDS),
    _call(b"XRANGE", _STREAM, _ID_BOUNDS, _ID_BOUNDS, b"COUNT", b"1"),
    _call(b"XREVRANGE", _STREAM, _ID_BOUNDS, _ID_BOUNDS, b"COUNT", b"2"),
    _call(b"XLEN", _STREAM),
    _call(b"XDEL", _STREAM, _IDS, _IDS),
    _call(b"XTRIM", _STREAM, b"MINID", _IDS),
    _call(b"SET", _TEXT, _WORDS),
    _call(b"SET", _TEXT, _WORDS, b"NX"),
    _call(b"SETNX", _TEXT, _WORDS),
    _call(b"APPEND", _TEXT, _WORDS),
    _call(b"GET", _TEXT),
    _call(b"MGET", _TEXT, b"missing"),
    _call(b"EXISTS", _HASH, _SET, _STREAM),
    _call(b"UNLINK", st.sampled_from([_HASH, _LIST, _SET, _TEXT])),
    _call(b"RENAME", st.sampled_from([_TEXT, b"missing"]), _TEXT),
    _call(b"PEXPIRE", st.sampled_from([_HASH, b"missing"]), b"100000"),
)
_UNORDERED = {b"HGETALL", b"HKEYS", b"HSCAN", b"TIME", b"PUBLISH"}
"""Commands whose replies have no order, or differ by machine."""


@pytest.fixture(scope="module")
def server(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url, protocol=2) as client:
        client.response_callbacks.clear()
        yield client


@given(calls=st.lists(_CALLS, max_size=40))
def test_commands_answer_as_a_real_server(server, calls):
    server.flushall()
    keyspace = Keyspace(lambda: START_MS)

    for name, *arguments in calls:
        try:
            expected = server.execute_command(name.decode(), *arguments)
        except redis.ResponseError as error:
            with pytest.raises(CommandError, match=re.escape(str(error)[:20])):
                keyspace.run(name, arguments)
        else:
            assert keyspace.run(name, arguments) == expected, (name, arguments)


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
