"""Limits of HTTP requests."""

from storage.domain.limits._shared import KIB, MIB, SECOND_MS

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
