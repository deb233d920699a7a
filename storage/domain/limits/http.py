"""Limits of HTTP requests."""

from storage.domain.units import KIB, MIB, SECOND_MS

# A request, before anybody looks at what it says
HEAD_BYTES_MAX = 64 * KIB  # its line and its headers; some tokens are long
HEAD_HEADERS_MAX = 100
URL_BYTES_MAX = 16 * KIB  # path and query; a presigned call or a token fits
QUERY_PARAMETERS_MAX = 100  # of the native API
CONTROL_BYTES_MAX = MIB  # of configuration as JSON: as plain values it takes some thirty times that
BATCH_CONTAINERS_MAX = 500_000  # braces and brackets of a large batch: each may become an object
BATCH_LOOKED_AT_BYTES = 256 * KIB  # a smaller one cannot do harm
HEAD_MS_MAX = (
    20 * SECOND_MS
)  # from a connection's begin, or its first byte, to the end of the headers
BODY_MS_MAX = 30 * SECOND_MS  # of a body, and beside it what it needs at this pace:
BODY_BYTES_PER_SECOND_MIN = 16 * KIB
UNFINISHED_LOOK_MS = SECOND_MS  # between two looks at requests that have not come whole
