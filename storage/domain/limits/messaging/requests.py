"""Limits of requests and their replies."""

from storage.domain.limits._shared import HOUR_MS, MIB, MINUTE_MS, SECOND_MS

# Requests and replies
REQUEST_TIMEOUT_MS_DEFAULT = 20 * SECOND_MS
REQUEST_TIMEOUT_MS_MAX = HOUR_MS
REQUEST_WAIT_MS_DEFAULT = 20 * SECOND_MS  # of one call, as that of a receive can be
REPLIES_MAX = 100  # of one request
REPLY_BYTES_MAX = MIB  # body and headers, as a message by default
REPLY_TTL_MS_DEFAULT = MINUTE_MS  # after the deadline
REPLY_TTL_MS_MAX = HOUR_MS
