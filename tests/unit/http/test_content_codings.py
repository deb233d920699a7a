"""Content codings: bodies arrive as they were sent, and cost no more memory than their bound."""

import gzip
import tracemalloc
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import HttpError, HttpErrorCode
from api.http.content_codings import CONTENT_ENCODING, decoded, gzipped

MIB = 2**20


def raw_deflate(body: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return coder.compress(body) + coder.flush()


def with_arrow(codec):
    return lambda body: pa.compress(body, codec=codec, asbytes=True)


CODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": with_arrow("brotli"),
    "zstd": with_arrow("zstd"),
}


async def decode(coding: str, body: bytes, bytes_max: int = MIB) -> bytes:
    return await decoded(body, {CONTENT_ENCODING: coding.encode()}, bytes_max)


@given(
    body=st.binary(max_size=500),
    coding=st.sampled_from([*CODERS]),
    other=st.sampled_from([*CODERS]),
)
async def test_decoded_body_is_what_was_coded(body, coding, other):
    twice = CODERS[other](CODERS[coding](body))

    assert await decode(coding, CODERS[coding](body)) == body
    assert await decode(f"{coding}, {other.upper()}", twice) == body
    assert await decode(f"identity,{coding}", CODERS[coding](body)) == body


@given(body=st.binary(max_size=500))
async def test_deflate_without_header_is_decoded(body):
    assert await decode("deflate", raw_deflate(body)) == body


async def test_gzip_of_several_members_is_decoded():
    assert await decode("gzip", gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.parametrize("coding", CODERS)
async def test_body_at_the_bound_is_accepted_and_above_is_not(coding):
    body = b"x" * MIB

    assert await decode(coding, CODERS[coding](body), MIB) == body
    with pytest.raises(HttpError) as refused:
        await decode(coding, CODERS[coding](body), MIB - 1)
    assert refused.value.code is HttpErrorCode.REQUEST_TOO_LARGE


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_bomb_costs_no_more_memory_than_its_bound(coding):
    bomb = CODERS[coding](bytes(200 * MIB))
    tracemalloc.start()
    before = pa.total_allocated_bytes()

    with pytest.raises(HttpError):
        await decode(coding, bomb, 10 * MIB)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 25 * MIB
    assert pa.total_allocated_bytes() - before < 25 * MIB


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("cut", [slice(-3), slice(5), slice(1, None)], ids=["end", "head", "begin"])
async def test_malformed_body_is_rejected(coding, cut):
    with pytest.raises(HttpError) as refused:
        await decode(coding, CODERS[coding](b"hello world" * 100)[cut])

    assert refused.value.code is HttpErrorCode.BAD_REQUEST
    assert coding in refused.value.detail


@pytest.mark.parametrize("coding", ["compress", "utf-8", "gzip, br, zstd", "aws-chunked"])
async def test_unknown_coding_is_refused_with_the_known_ones(coding):
    with pytest.raises(HttpError) as refused:
        await decode(coding, b"x")

    assert refused.value.code is HttpErrorCode.UNSUPPORTED_MEDIA_TYPE
    assert dict(refused.value.headers)[b"accept-encoding"] == b"gzip, deflate, br, zstd"


@pytest.mark.parametrize(
    ("accepted", "is_coded"),
    [
        (b"gzip", True),
        (b"gzip, deflate, br", True),
        (b"br;q=1.0, GZIP;q=0.5", True),
        (b"*", True),
        (b"", False),
        (b"identity", False),
        (b"gzip;q=0", False),
        (b"*, gzip;q=0", False),
        (b"br", False),
        (b"identity, gzip;q=0.5", False),
        (b"gzip;q=much", False),
    ],
)
async def test_answer_is_compressed_as_the_client_accepts(accepted, is_coded):
    compressed = await gzipped(b"x" * 100_000, accepted)

    assert (compressed is not None) == is_coded
    assert compressed is None or gzip.decompress(compressed) == b"x" * 100_000
