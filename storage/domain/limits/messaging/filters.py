"""Limits of matches: subjects, filters and their index."""

from storage.domain.limits._shared import KIB

# Subjects
SUBJECT_BYTES_MAX = 255  # as a RabbitMQ routing key
SUBJECT_TOKENS_MAX = 32  # words with dots between; bounds the steps of a search in the trie
SUBJECT_ANSWERS_MAX = 100_000  # subjects whose answer is cached, per trie
SUBJECT_ANSWERS_ITEMS_MAX = 500_000  # in all of these answers: 16 MB

# Filters
FILTER_BYTES_MAX = 64 * KIB  # of JSON text
FILTER_DEPTH_MAX = 32  # nested objects and $or
FILTER_STARS_MAX = 5  # per wildcard pattern
FILTER_COMBINATIONS_MAX = 1_000  # conjunctions after $or is multiplied out
FILTER_CONDITIONS_MAX = 20_000  # in all of these together: what a compiled filter holds in memory
FILTER_NUMBER_MAX = 5_000_000_000  # of a numeric range, as EventBridge has it
FILTER_NUMBER_DECIMALS_MAX = 6
FILTER_ARRAYS_MAX = 16  # arrays in arrays; values in deeper ones are not visible
FILTER_CHOICES_MAX = 200_000  # choices of array elements that a conjunction joins; beyond, it fails
FILTER_ADDRESSES_MAX = 10_000  # parsed IP addresses that a process caches

# Matches
MATCHES_MAX = 100  # per route
MATCH_SUBJECTS_MAX = 100  # patterns of one match
READER_ALTERNATIVES_MAX = 100  # conjunctions of a reader's match, which no index finds
READER_WHERE_CHARACTERS_MAX = 4_096  # SQL conditions of all of these together: 0.2 ms a record

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

# Translation of other systems' conditions
PUBSUB_NESTING_MAX = 16  # parentheses and NOTs in a Pub/Sub filter
