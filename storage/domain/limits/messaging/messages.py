"""Limits of names, of a message or record, and of one call."""

from storage.domain.limits._shared import MIB, SECOND_MS

# Names
NAME_CHARACTERS_MAX = 80  # every SQS queue name fits
KEY_CHARACTERS_MAX = 256  # a Kinesis partition key
GROUP_CHARACTERS_MAX = 128  # an SQS MessageGroupId
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255  # draft-ietf-httpapi-idempotency-key-header
PRODUCER_ID_CHARACTERS_MAX = 128
FENCE_CHARACTERS_MAX = 36
TAGS_MAX = 50  # as SQS and Kinesis
TAG_KEY_CHARACTERS_MAX = 128
TAG_VALUE_CHARACTERS_MAX = 256

# Messages and records
MESSAGE_BYTES_MAX = 1 * MIB  # body and headers together, as SQS since 2025
RECORD_BYTES_MAX = (
    10 * MIB
)  # as Kinesis; more than the default only if the stream's configuration allows it
RECORD_BYTES_MAX_DEFAULT = 1 * MIB
HEADERS_MAX = 32
HEADER_NAME_CHARACTERS_MAX = 256
REASON_CHARACTERS_MAX = 1_024
DETAILS_CHARACTERS_MAX = 4_096  # of a failure, such as a stack trace or a receiver's response

# Calls
BATCH_MESSAGES_MAX = 1_000
BATCH_RECORDS_MAX = 1_000
IDEMPOTENT_COLUMNS_MAX = 4_000  # that a replay appends in one call, in several entries
REQUEST_BYTES_MAX = 16 * MIB
PAGE_ITEMS_MAX = 1_000
LISTED_NAMES_MAX = 20_000  # names that one search returns: 100 B each, 30 ms to read
PAGE_ITEMS_DEFAULT = 100
WAIT_MS_MAX = 20 * SECOND_MS  # as SQS
