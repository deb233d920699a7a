"""The parts of h2 that are not public, and the encoder of header blocks."""

import random

import pytest
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from hpack import Decoder
from hyperframe.frame import ContinuationFrame, GoAwayFrame, HeadersFrame

from api.server.http2 import connection_state
from api.server.http2.connection_state import ConnectionState
from api.server.http2.field_encoder import FieldEncoder
from storage.domain import limits
from tests.http2_client import PREFACE


@pytest.fixture
def state() -> ConnectionState:
    made = ConnectionState()
    made.receive_data(PREFACE)
    return made


def test_docstring_names_what_is_relied_on():
    document = connection_state.__doc__ or ""
    h2s = H2Connection()

    assert "decoder.max_header_list_size" in document
    assert hasattr(h2s.decoder, "max_header_list_size")
    for name in (
        "encoder",
        "local_settings",
        "_prepare_for_sending",
        "_receive_data_frame",
        "_receive_frame",
        "_receive_goaway_frame",
    ):
        assert name in document
        assert hasattr(h2s, name)
    for name in ("_data", "_headers_buffer"):
        assert f"incoming_buffer.{name}" in document
        assert hasattr(h2s.incoming_buffer, name)


def test_partial_frame_and_header_block_are_seen(state):
    block = HeadersFrame(1, b"a" * 10).serialize()
    sizes = []
    for piece in (block[:5], block[5:], ContinuationFrame(1, b"b" * 7).serialize()):
        state.receive_data(piece)
        sizes.append((state.has_partial_frame, state.header_block_bytes))

    assert not ConnectionState().has_partial_frame
    assert sizes == [(True, 0), (True, 10), (True, 17)]


def test_goaway_in_either_direction_leaves_streams_open(state):
    client = H2Connection()
    client.initiate_connection()
    head = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
    client.send_headers(1, head, end_stream=True)
    state.receive_data(client.data_to_send()[len(PREFACE) :])
    state.goaway(ErrorCodes.NO_ERROR)
    state.receive_data(GoAwayFrame(last_stream_id=0).serialize())
    state.data_to_send()

    state.send_headers(1, [(b":status", b"200")], end_stream=True)

    assert state.data_to_send()


def test_settings_announce_the_limits():
    client = H2Connection()
    client.initiate_connection()
    client.receive_data(ConnectionState().data_to_send())

    settings = client.remote_settings
    assert settings.max_concurrent_streams == limits.HTTP2_STREAMS_MAX
    assert settings.initial_window_size == limits.HTTP2_WINDOW_BYTES
    assert settings.max_header_list_size == limits.HTTP2_HEADER_LIST_BYTES_MAX
    assert settings.max_frame_size == 16_384
    assert not settings.enable_connect_protocol
    window = limits.HTTP2_STREAMS_MAX * limits.HTTP2_WINDOW_BYTES
    assert client.outbound_flow_control_window == window


def test_encoded_fields_are_decoded_alike_by_hpack():
    chance = random.Random(7)
    encoder, decoder = FieldEncoder(), Decoder(max_header_list_size=2**20)
    for size in (0, 1, 64, 65, 126, 127, 128, 254, 255, 300, 20_000):
        fields = [
            (b":status", b"200"),
            (bytes(chance.choices(b"abc-", k=max(size % 200, 1))), chance.randbytes(size)),
            (b"content-length", b"%d" % size),
        ]

        assert list(decoder.decode(encoder.encode(fields), raw=True)) == fields


def test_first_block_gives_up_the_table_whatever_the_setting():
    encoder = FieldEncoder()
    encoder.header_table_size = 65_536
    first, second = (encoder.encode([(b"a", b"b")]) for _ in range(2))
    decoder = Decoder()
    decoder.max_allowed_table_size = 0  # as after the client's own setting

    assert first == b"\x20" + second
    assert list(decoder.decode(first, raw=True)) == [(b"a", b"b")]
    assert decoder.header_table_size == 0
