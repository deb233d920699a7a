"""Commands to the hot store, as encoded on the wire."""

from hiredis import pack_command
from hypothesis import given
from hypothesis import strategies as st

from storage.redis.transport.connection_lane import packed

LARGE = b"x" * 20_000

arguments = st.one_of(
    st.binary(max_size=40), st.text(max_size=20), st.integers(), st.just(LARGE), st.just(b"")
)


@given(st.lists(st.lists(arguments, min_size=1, max_size=6).map(tuple), min_size=1, max_size=4))
def test_packed_pieces_equal_the_encoded_commands(commands):
    assert b"".join(packed(commands)) == b"".join(map(pack_command, commands))


def test_large_arguments_are_not_copied_and_small_ones_joined():
    small, large = (b"PING",), (b"SET", "ключ", LARGE, b"PX", 10)

    assert len(packed([small] * 9)) == 1
    [before, between, after] = packed([small, large, small])
    assert between is LARGE
    assert before.endswith(b"$20000\r\n")
    assert after.startswith(b"\r\n$2\r\nPX\r\n")
