"""Limits of HTTP requests."""

from storage.domain.limits._shared import KIB, MIB, MINUTE_MS, SECOND_MS

# HTTP requests, before their content is read
HEAD_BYTES_MAX = 64 * KIB  # request line and headers; some tokens are long
HEAD_HEADERS_MAX = 100
URL_BYTES_MAX = 16 * KIB  # path and query; fits a presigned call or a token
HEADS_CACHED_MAX = 512  # parsed heads of one process, see api.server.head_cache
HEAD_CACHED_BYTES_MAX = 2 * KIB  # a longer head is parsed each time
QUERY_PARAMETERS_MAX = 100  # of the native API
CONTROL_BYTES_MAX = MIB  # configuration as JSON: decoded, it needs about thirty times that
PUBLIC_BODY_BYTES_MAX = (
    MIB  # of callers without a key: events of sources, of which GitHub's are seldom larger
)
BATCH_CONTAINERS_MAX = 500_000  # braces and brackets of a large batch: each may become an object
BATCH_CHECKED_BYTES_MIN = 256 * KIB  # a smaller batch can do no harm
HEAD_MS_MAX = (
    20 * SECOND_MS
)  # from the connection's start, or the first byte, to the end of the headers
BODY_MS_MAX = 30 * SECOND_MS  # for a body, plus the time that it needs at BODY_BYTES_PER_SECOND_MIN
BODY_BYTES_PER_SECOND_MIN = 16 * KIB
SLOW_REQUEST_CHECK_MS = SECOND_MS  # interval of the check for incomplete requests

# Content codings
CONTENT_CODINGS_MAX = 2  # of one body: each is decoded within the same limit of bytes
CODED_ANSWER_BYTES_MIN = KIB  # a smaller answer is sent as it is
CODED_INLINE_BYTES_MAX = 64 * KIB  # larger bodies are coded in a thread: a millisecond or more

# HTTP/2: what a client may have open or send, as the settings announce it
HTTP2_STREAMS_MAX = 128  # requests in progress; each long poll and each subscription is one
HTTP2_WINDOW_BYTES = 128 * KIB  # of a request body that has arrived and is not read yet
HTTP2_HEADER_LIST_BYTES_MAX = HEAD_BYTES_MAX + 32 * (HEAD_HEADERS_MAX + 4)  # as HPACK counts it

# HTTP/2: what ends a connection
HTTP2_HEADER_BLOCK_BYTES_MAX = (
    2 * HTTP2_HEADER_LIST_BYTES_MAX
)  # HEADERS and CONTINUATION frames, coded or decoded; up to here the response is 431
HTTP2_OPENED_STREAMS_MAX = 1_000  # at once, before the client knows HTTP2_STREAMS_MAX
HTTP2_RESETS_MAX = 1_000  # unfinished requests reset or refused at once (CVE-2023-44487)
HTTP2_RESETS_PER_SECOND_MAX = 33  # afterwards; as in nghttp2
HTTP2_IDLE_FRAMES_MAX = (
    1_000  # at once of frames that carry nothing: PING, SETTINGS, PRIORITY, empty DATA
)
HTTP2_IDLE_FRAMES_PER_SECOND_MAX = 200  # afterwards
HTTP2_STALL_MS_MAX = 2 * MINUTE_MS  # without reading any of a response
HTTP2_BACKLOG_BYTES_MAX = MIB  # written, but not read by the client

# HTTP/2: memory and fairness
HTTP2_COLLECTED_BYTES_MAX = (
    64 * KIB
)  # of a body that is collected before its request is processed; a larger one is read afterwards
HTTP2_UNSENT_BYTES_MAX = 16 * MIB  # of responses that wait for the client; then new requests wait
HTTP2_TURN_BYTES = 64 * KIB  # of a response, before other streams of its connection have a turn
HTTP2_READ_BYTES = 32 * KIB  # parsed between two checks of these limits
HTTP2_CLOSED_STREAMS_MAX = 1_000  # remembered, to tell late frames from wrong ones
