"""State of an HTTP/2 connection: h2's, with what a server needs in addition.

h2 promises nothing about these parts, on which the class relies; `tests/unit/http2/test_connection_state.py` has a test of each:

    replaced    decoder.max_header_list_size encoder local_settings _receive_frame _receive_goaway_frame
    called      _prepare_for_sending _receive_data_frame
    read        incoming_buffer._data incoming_buffer._headers_buffer
"""

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event
from h2.settings import SettingCodes, Settings
from hyperframe.frame import DataFrame, Frame, GoAwayFrame

from api.server.http2.field_encoder import FieldEncoder
from storage.domain import limits

_CONFIGURATION = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_outbound_headers=False,  # the fields of responses are ours
    normalize_outbound_headers=False,
)
_PROTOCOL_WINDOW_BYTES = 65_535  # of a new connection (RFC 9113, section 6.9.2)


class ConnectionState(H2Connection):
    """The server's side of a connection, with its settings sent."""

    MAX_CLOSED_STREAMS = limits.HTTP2_CLOSED_STREAMS_MAX

    def __init__(self) -> None:
        super().__init__(_CONFIGURATION)
        self.encoder = FieldEncoder()  # type: ignore[assignment]
        self.decoder.max_header_list_size = limits.HTTP2_HEADER_BLOCK_BYTES_MAX
        self.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: limits.HTTP2_STREAMS_MAX,
                SettingCodes.INITIAL_WINDOW_SIZE: limits.HTTP2_WINDOW_BYTES,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.HTTP2_HEADER_LIST_BYTES_MAX,
            },
        )
        self.initiate_connection()
        # h2 would end the connection of a client that opens more streams before it has the settings. They are refused instead.
        self.local_settings.max_concurrent_streams = limits.HTTP2_OPENED_STREAMS_MAX
        self.local_settings.acknowledge()
        # All streams fill their windows before the connection's is full, so no stream waits for another to be read.
        window_bytes = limits.HTTP2_STREAMS_MAX * limits.HTTP2_WINDOW_BYTES
        self.increment_flow_control_window(window_bytes - _PROTOCOL_WINDOW_BYTES)

    @property
    def has_partial_frame(self) -> bool:
        """Return whether a frame or a header block has begun to arrive."""
        buffer = self.incoming_buffer
        return bool(buffer._data or buffer._headers_buffer)

    @property
    def header_block_bytes(self) -> int:
        """Return the size of the incomplete header block."""
        return sum(len(frame.data) for frame in self.incoming_buffer._headers_buffer)

    def goaway(self, code: ErrorCodes) -> bytes:
        """Return a GOAWAY frame for the streams so far; h2's own would end them too."""
        return GoAwayFrame(
            last_stream_id=self.highest_inbound_stream_id, error_code=code
        ).serialize()

    def _receive_frame(self, frame: Frame) -> list[Event]:
        """Receive a frame; h2 describes each in hexadecimal digits first, for a log.

        For DATA frames that took a third of the time of a large body.
        """
        if not isinstance(frame, DataFrame):
            return super()._receive_frame(frame)
        frames, events = self._receive_data_frame(frame)
        self._prepare_for_sending(frames)
        return events

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        """Report that the client opens no more streams; h2 would end the open ones too.

        Node's client sends GOAWAY when it is told to close, and then waits for its responses.
        """
        return [], [ConnectionTerminated()]
