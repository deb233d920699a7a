"""Limits of the conditions by which routes, listeners and replays select messages."""

# SQL conditions (`where`)
WHERE_CHARACTERS_MAX = 4_096
WHERE_NODES_MAX = 512  # names, literals and operators of a condition
WHERE_DEPTH_MAX = 64  # of the syntax tree; the operands of a chain of ANDs or ORs are siblings
WHERE_NESTING_MAX = (
    16  # parentheses, or signs and NOTs in a row: a level takes the parser 20 frames
)
WHERE_PATH_PARTS_MAX = 32  # words of one name
WHERE_NUMBER_CHARACTERS_MAX = 64  # of a number, in a condition or in a header
LIKE_PATTERN_CHARACTERS_MAX = 256
LIKE_TEXT_CHARACTERS_MAX = (
    65_536  # for patterns with `_` after `%`, whose search may read a text again
)

# Subjects
SUBJECT_BYTES_MAX = 255  # as a RabbitMQ routing key
SUBJECT_TOKENS_MAX = 32

# Translation of other systems' conditions
PUBSUB_NESTING_MAX = 16  # parentheses and NOTs in a Pub/Sub filter
