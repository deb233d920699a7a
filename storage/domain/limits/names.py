"""Limits of names, keys and tags."""

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
