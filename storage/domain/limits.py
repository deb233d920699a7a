"""Every limit of Millstream, by name, with its reason.

Suffixes carry the unit. A limit that a queue or stream may lower is the ceiling of that setting.
"""

import msgspec

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

KIB = 1024
MIB = 1024 * KIB

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

# One message or record
MESSAGE_BYTES_MAX = 1 * MIB  # body and headers together, as SQS since 2025
RECORD_BYTES_MAX = 10 * MIB  # as Kinesis; a stream takes more than the default where it says so
RECORD_BYTES_MAX_DEFAULT = 1 * MIB
HEADERS_MAX = 32
HEADER_NAME_CHARACTERS_MAX = 256
REASON_CHARACTERS_MAX = 1_024

# One call
BATCH_MESSAGES_MAX = 1_000
BATCH_RECORDS_MAX = 1_000
REQUEST_BYTES_MAX = 16 * MIB
RECEIVE_MESSAGES_MAX = 1_000
RECEIVE_BYTES_MAX = 8 * MIB  # what one receive reads; at least one message is always returned
SETTLEMENTS_MAX = 1_000
READ_RECORDS_MAX = 10_000
READ_BYTES_MAX = 10 * MIB  # as Kinesis GetRecords
TABLE_BYTES_MAX = 16 * MIB  # of records that go out as one Arrow stream: a row group of the archive
TABLES_AT_ONCE = 4  # in a process: each takes some four times its bytes while it is made
TABLES_WAITING_MAX = 64  # calls that wait for one of these to end; beyond it the caller hears 503
PAGE_ITEMS_MAX = 1_000
LISTED_NAMES_MAX = 20_000  # names that one search gives: 100 B each, 30 ms to read
PAGE_ITEMS_DEFAULT = 100
WAIT_MS_MAX = 20 * SECOND_MS  # as SQS

# One entry of a log
ENTRY_RECORDS_MAX = 1_000  # a reader that wants one record decodes at most this many
ENTRY_BYTES_MAX = 1 * MIB  # or one larger record

# Queues
VISIBILITY_TIMEOUT_MS_MAX = 12 * HOUR_MS  # also the longest one delivery may be extended to
VISIBILITY_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
DELAY_MS_MAX = 3650 * DAY_MS
TTL_MS_MAX = 3650 * DAY_MS
QUEUE_RETENTION_MS_MIN = MINUTE_MS
QUEUE_RETENTION_MS_MAX = 365 * DAY_MS
QUEUE_RETENTION_MS_DEFAULT = 4 * DAY_MS
DEAD_LETTER_RETENTION_MS_DEFAULT = 14 * DAY_MS
ATTEMPTS_MAX_DEFAULT = 10
ATTEMPTS_MAX_MAX = 1_000
RECEIVES_MAX_MAX = 1_000  # as maxReceiveCount
IN_FLIGHT_MAX_MAX = 10_000_000
IN_FLIGHT_MAX_DEFAULT = IN_FLIGHT_MAX_MAX
REDRIVE_SOURCES_MAX = 10  # as SQS byQueue
PRIORITY_MAX = 9
QUEUE_MESSAGES_MAX = 10**12  # a cap beyond it would never be met
QUEUE_BYTES_MAX = 2**50
GROUP_WEIGHTS_MAX = 100  # each is compared with a group whose turn it is
GROUP_WEIGHT_MAX = 1_000  # messages of one group in a row
DEATH_REASONS_COUNTED_MAX = 5_000  # dead letters that a page counts by reason each time: five calls
DEATH_REASONS_TTL_MS = 15 * SECOND_MS  # how old the counts of more may be on a page
BROWSE_LOOKS_MAX = 1_000  # messages that one call of browsing looks at
BROWSE_BYTES_MAX = (
    RECEIVE_BYTES_MAX  # of messages or dead letters in a page; at least one is always shown
)
BACKOFF_MULTIPLIER_MAX = 100
BACKOFF_DELAYS_MAX = 100
ARRIVAL_WINDOW_MS = 10 * MINUTE_MS  # how long a queue remembers what came from another one
MOVE_STEP_MS_MAX = MINUTE_MS  # older news of what is moving is not acted on: well within the window
MOVE_BATCH_MESSAGES = 100
MOVE_RATE_MAX = 500  # messages a second, as SQS
DEDUP_WINDOW_MS = 5 * MINUTE_MS  # as SQS FIFO
ATTEMPT_WINDOW_MS = 5 * MINUTE_MS  # as SQS FIFO's ReceiveRequestAttemptId
ATTEMPT_ID_CHARACTERS_MAX = 128

# Streams
SHARDS_MAX = 1_024
ON_DEMAND_SHARD_RECORDS = (
    1_000  # a second, as Kinesis; what a shard of an on-demand stream is meant to carry
)
ON_DEMAND_SHARD_BYTES = 1 * MIB  # a second
ON_DEMAND_HOT = 0.8  # of it: a shard is split before it is full
ON_DEMAND_QUIET = 0.2  # of it: a shard that carried less for so long may be merged
ON_DEMAND_COLD_MS = HOUR_MS
ON_DEMAND_WINDOW_MS = MINUTE_MS  # a shorter burst splits nothing
ON_DEMAND_SHARDS_MAX = 256  # what load alone may open; an owner's reshard goes further
ON_DEMAND_RANGE_MIN = (
    2**128 // 4_096
)  # a narrower shard is not split: one hot key would split for ever
TIDY_KEYS_PER_CALL = 1_000  # of a key index that one call looks at
TRUNCATE_ENTRIES_PER_CALL = 10_000  # freed at once; a sweep frees the rest
RESHARDS_AT_ONCE_MAX = 2  # by one process: each holds a connection to Postgres
RESHARD_LOGS_AT_ONCE = 4  # logs that a reshard makes or closes at one time
CLOSED_SHARD_MS_MIN = DAY_MS  # an empty closed shard stays so long, unless retention is shorter
STREAM_RETENTION_MS_MIN = MINUTE_MS
STREAM_RETENTION_MS_MAX = 3650 * DAY_MS
STREAM_RETENTION_MS_DEFAULT = 7 * DAY_MS

# The archive
HOT_RETENTION_MS_DEFAULT = DAY_MS  # most readers are behind by less
HOT_BYTES_MAX_DEFAULT = 1024 * MIB  # of a shard
HOT_BYTES_MIN = MIB
ARCHIVE_LAG_MS_DEFAULT = 5 * MINUTE_MS
ARCHIVE_LAG_MS_MIN = SECOND_MS
ARCHIVE_LAG_MS_MAX = DAY_MS
ARCHIVE_FILE_BYTES = 128 * MIB  # of records, before compression
ARCHIVE_FILE_RECORDS = 1_000_000
ARCHIVE_ROW_GROUP_BYTES = 16 * MIB  # what a read of one record decodes
RANGE_RECORDS_MAX = 10_000  # of one bulk read of a log: some 20 ms of the hot store at the worst
RANGE_BYTES_MAX = 4 * MIB
ARCHIVE_BUDGET_PARTS = 8  # of a hot budget: a quarter of what may lie unarchived makes a log due
ARCHIVE_RANGES_PER_JOB = 2_000  # that one job takes along
ARCHIVE_RANGE_RECORDS = ARCHIVE_FILE_RECORDS  # what one task archives
ARCHIVE_RANGES_PER_LOG = 32  # of one job, so that a log far behind lets others in between
ARCHIVE_LANES = 4  # jobs of a namespace at once: a stream is always in the same one
ARCHIVE_COPIES_AT_ONCE = 4  # ranges that one task has in hand: each holds some row groups in memory
ARCHIVE_LOGS_AT_ONCE = 50  # measured at one time
ARCHIVE_DELETIONS_PER_ROUND = 1_000
COMPACT_BELOW_BYTES = 32 * MIB
COMPACT_FILES_MIN = 4
COMPACT_AFTER_MS = 10 * MINUTE_MS  # behind the end of an hour
READER_GRACE_MS = DAY_MS  # a file that was replaced stays so long, for readers that planned with it
ORPHAN_AGE_MS = DAY_MS  # a file that nobody committed is deleted after this
STAGED_PARTS_MAX = 10_000  # of one commit: 80 GB in parts as the Spark sink makes them
COMMIT_TURN_MS = 5 * SECOND_MS  # what one call appends of a commit; then it is called again
COMMIT_ALONE_MS = MINUTE_MS  # a commit that its writer has left is finished by a sweep after this
WRITES_KEPT_MS = 30 * DAY_MS  # a batch that runs again after this would be appended again
ARCHIVE_READERS = 4  # threads of a process that fetch and decode
ARCHIVE_LOADS_MAX = (
    64  # row groups and footers under way or waiting; beyond it the caller hears 503
)
ARCHIVE_CACHE_BYTES = 128 * MIB  # of decoded row groups, in a process
ARCHIVE_GROUP_BYTES = (
    16 * KIB
)  # what one of them takes beside its records: small ones would be many
ARCHIVE_FOOTERS_BYTES = 32 * MIB  # of the files' footers, in a process
ARCHIVE_PLANS_MAX = 10_000  # shards whose next files a process knows
ARCHIVE_PLAN_FILES = 100  # that it knows ahead
ARCHIVE_PLAN_MS = 10 * MINUTE_MS  # far below READER_GRACE_MS
ARCHIVE_EXTENT_MS = SECOND_MS  # how old what is known of an archive's reach may be
ARCHIVE_EXTENT_WAIT_MS = 500  # a hot read waits so long, once, to hear where the archive begins
ARCHIVE_FOLLOWED_MAX = 10_000  # places where a read ended, which another one may go on from

# Jobs
JOB_LEASE_MS = 60 * SECOND_MS
JOB_HEARTBEAT_MS = 15 * SECOND_MS
JOB_POLL_MS = SECOND_MS  # a worker with nothing to do asks again after this
JOB_ATTEMPTS_MAX_DEFAULT = 10
JOB_FAILURE_CHARACTERS_MAX = 2_000
JOB_PARTS_PER_CALL = 1_000
JOBS_FORGOTTEN_PER_CALL = 1_000
JOB_BACKOFF_MS_MIN = SECOND_MS
JOB_BACKOFF_MS_MAX = 5 * MINUTE_MS
JOB_FAILURES_TOLD_MAX = 20
JOB_KEPT_MS = 30 * DAY_MS  # what is over can be looked at for so long

# Replays
REPLAY_BATCH_RECORDS = 500  # of one part that are on their way at once
REPLAY_BATCH_BYTES = MIB
REPLAY_BATCH_SECONDS = 0.1  # of a rate: a slow replay does not come in bursts
REPLAY_READ_RECORDS = 2_000  # of one part that are held in memory
REPLAY_READ_BYTES = 2 * MIB
REPLAY_READ_BYTES_MIN = 64 * KIB
REPLAY_LANE_BYTES = 32 * MIB  # of all parts that one writer merges
REPLAY_PARTS_AT_ONCE = 16  # of one task: what bounds its memory
REPLAY_RANGE_RECORDS = 250_000  # of a part, where no order is asked for
REPLAY_RANGES_MAX = (
    900  # so that a replay's parts are stored at once, and each is one producer at the target
)
REPLAY_SAVE_MS = SECOND_MS  # between two notes of how far it is, and looks at what its owner wishes
REPLAY_LATENCY_MS_MAX = 250.0  # of its appends: beyond it live traffic has the right of way
REPLAY_LATENCIES = 40  # the last appends that this is judged by
REPLAY_PAUSE_MS_MIN = 10.0
REPLAY_PAUSE_MS_MAX = 2_000.0
REPLAY_PAUSE_EASES = 0.8  # of a pause is left after an append that was quick
REPLAY_RETRY_MS_MIN = 20  # before an append that failed is repeated
REPLAY_RETRY_MS_MAX = 5_000
REPLAY_RETRIES_MAX = 60  # then the attempt has failed, and another one is made after a while
REPLAY_RATE_MAX = 10_000_000
REPLAY_BYTES_RATE_MAX = 2**40
REPLAY_SPEED_MAX = 1_000_000
REPLAY_SCAN_RECORDS_MAX = 200_000  # that an exact plan reads while its caller waits
REPLAY_LOOKS_PER_SHARD = 4  # places of a shard that an estimate is made from
REPLAY_LOOK_RECORDS = 50
REPLAY_LOOKS_MAX = 200  # of a plan: more shards are looked at in turn
REPLAY_SAMPLE_MAX = 20
REPLAY_RECORDS_PER_SECOND = 20_000  # what a plan assumes of one that goes as fast as it can
REPLAY_FORGOTTEN_BEFORE_MS = (
    DAY_MS  # a failed one can be tried again until so long before it is deleted
)
FILTER_WORDS_MAX = 1_000  # keys, headers or conditions of a filter

# Consumer groups
SESSION_TIMEOUT_MS_MIN = SECOND_MS
SESSION_TIMEOUT_MS_MAX = 30 * MINUTE_MS
SESSION_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
STATIC_TIMEOUT_MS_DEFAULT = 5 * MINUTE_MS  # a static member's restart moves no shard
REVOKE_TIMEOUT_MS_DEFAULT = MINUTE_MS  # then a shard moves, whether it was given up or not
HEARTBEAT_MS_MAX = 5 * SECOND_MS  # also how late a waiting member hears of a new assignment
MEMBERS_MAX = 1_024  # as many as shards: more would have nothing to read
COMMIT_SHARDS_MAX = SHARDS_MAX
BOOKMARKS_MAX = 1_000  # of one group
GROUP_ASKS_MAX = 500  # commits or heartbeats that share a statement
GROUP_BACKLOG_MAX = 20_000  # calls waiting for a statement; beyond it the caller hears 503
ATTENDANCE_MS = SECOND_MS  # how often a process notes that the database is there
OUTAGE_MS = 5 * SECOND_MS  # nobody noted it for so long: the database was away
GROUP_TIPS_KNOWN_MAX = (
    100_000  # ends of logs that a process remembers, so as not to ask at each commit
)

# Push
PUSH_ID_CHARACTERS_MAX = 128
HELLO_MS_MAX = 10 * SECOND_MS  # a socket that says nothing is not kept
PUSH_HEARTBEAT_MS = 25 * SECOND_MS  # below the idle time-out of common proxies
PUSH_PONG_MS_MAX = 8 * SECOND_MS
RESUME_MS = (
    30 * SECOND_MS
)  # how long a broken session may be taken up again, and keeps its deliveries
CREDIT_MESSAGES_DEFAULT = 100
CREDIT_MESSAGES_MAX = 10_000
CREDIT_BYTES_DEFAULT = 1 * MIB
CREDIT_BYTES_MAX = 64 * MIB
SUBSCRIPTIONS_MAX = 128  # of one session
SOCKETS_MAX = 10_000  # of one process
FRAME_BYTES_MAX = 2 * MIB  # from a client; a message of 1 MiB in base64 fits
PUSH_BYTES_MAX = 256 * KIB  # of bodies in one frame; one message may be larger
PUSH_RECORDS_MAX = 1_000  # in one frame
PUSH_SKIPPED_TOLD = (
    10_000  # records that a filter left out: then the client hears how far its reading is
)
PUSH_KEPT_BYTES = 4 * MIB  # of deliveries that a session keeps until their arrival is known
PUSH_KEPT_FRAMES = 4_096
PUSH_PENDING_MAX = (
    256  # publishes and settlements of a session that wait; then its socket is not read
)
PUSH_TICK_MS = SECOND_MS  # how often sessions are looked at for what is due
PUSH_BACKOFF_MS_MIN = 200  # before a subscription asks again that met an outage
PUSH_BACKOFF_MS_MAX = 5 * SECOND_MS
DRAIN_SPREAD_MS = (
    5 * SECOND_MS
)  # within which the clients of a server that ends are asked to come back
SLOW_CONSUMER_MS = 10 * SECOND_MS  # nothing of what waits could be sent for so long

# Feeds, which many readers share
FEED_READ_RECORDS = 1_000  # of one read: what is encoded in one go
EVENTS_HEARTBEAT_MS = 15 * SECOND_MS  # below the idle time-out of common proxies
EVENT_READERS_MAX = 10_000  # of one process
FEED_READ_BYTES = 1 * MIB  # or one larger record
FEEDS_BYTES_MAX = 64 * MIB  # that all feeds of a process remember, with what was encoded of it

# Webhooks
NACK_DELAY_MS_MAX = 2 * DAY_MS  # the longest wait of a retry schedule, with its jitter
WEBHOOK_URL_CHARACTERS_MAX = 2_048
WEBHOOK_HEADERS_MAX = 32
WEBHOOK_HEADER_BYTES_MAX = 4 * KIB  # of one value
WEBHOOK_TIMEOUT_MS_MIN = 100
WEBHOOK_TIMEOUT_MS_MAX = 120 * SECOND_MS
WEBHOOK_TIMEOUT_MS_DEFAULT = 15 * SECOND_MS  # as Standard Webhooks asks: 15 to 30
WEBHOOK_IN_FLIGHT_MAX = 1_000
WEBHOOK_IN_FLIGHT_DEFAULT = 10
WEBHOOK_RATE_MAX = 10_000  # a second
WEBHOOK_RETRIES_MAX = 50
WEBHOOK_RETRY_MS_MAX = DAY_MS
WEBHOOK_RETRY_DELAYS_MS = (  # of Standard Webhooks: before the first attempt nothing, then these
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
)
WEBHOOK_JITTER = 0.1  # of a delay, to either side: what failed together does not come back together
WEBHOOK_DISABLE_AFTER_MS_DEFAULT = 5 * DAY_MS  # of nothing but failure
WEBHOOK_DISABLE_AFTER_MS_MIN = MINUTE_MS
WEBHOOK_DISABLE_AFTER_MS_MAX = 30 * DAY_MS
WEBHOOK_RETRY_AFTER_MS_MAX = HOUR_MS  # of what a receiver's Retry-After may ask
WEBHOOK_THROTTLE_MS_MIN = (
    SECOND_MS  # after a 429 or 502 to 504 that says no time; doubled each time
)
WEBHOOK_THROTTLE_MS_MAX = MINUTE_MS
WEBHOOK_BREAKER_FAILURES = 10  # in a row: the receiver is left alone for a while
WEBHOOK_BREAKER_MS_MIN = 10 * SECOND_MS
WEBHOOK_BREAKER_MS_MAX = 10 * MINUTE_MS
WEBHOOK_RESPONSE_BYTES_MAX = 4 * KIB  # read, and kept
WEBHOOK_ERROR_CHARACTERS_MAX = 500
WEBHOOK_SECRET_BYTES = 32
WEBHOOK_SECRETS_MAX = 5  # that sign at one time, while they are changed again and again
WEBHOOK_OVERLAP_MS_DEFAULT = DAY_MS  # how long a secret that was replaced signs beside the new one
WEBHOOK_OVERLAP_MS_MAX = 30 * DAY_MS
WEBHOOK_LEASE_MS = 10 * SECOND_MS  # a killed deliverer's webhooks move on within this, and a beat
WEBHOOK_BEAT_MS = SECOND_MS
WEBHOOK_MESSAGE_LEASE_MS = 15 * SECOND_MS  # of a message, extended while its delivery is under way
WEBHOOK_EXTEND_MS = 5 * SECOND_MS
WEBHOOK_RECEIVE_MAX = 100
WEBHOOK_READ_RECORDS = 200  # of one shard that are held in memory
WEBHOOK_READ_BYTES = 4 * MIB
WEBHOOK_COMMIT_MS = SECOND_MS  # records delivered since may be delivered again after a kill
WEBHOOK_SOURCE_RETRY_MS = 5 * SECOND_MS  # a source that is gone, or a store that is away
WEBHOOK_ATTEMPTS_KEPT = 20  # of one delivery
WEBHOOK_LOG_MS_DEFAULT = 3 * DAY_MS
WEBHOOK_LOG_MS_MIN = MINUTE_MS
WEBHOOK_LOG_MS_MAX = 30 * DAY_MS
WEBHOOK_LOG_FLUSH_ROWS = 500  # of the log, in one statement
WEBHOOK_LOG_FLUSH_MS = 50  # how long a row waits for company
WEBHOOK_LOG_BACKLOG_MAX = 5_000  # rows that wait; beyond it deliveries wait as well
WEBHOOK_LOG_DELETES = 5_000  # in one statement
WEBHOOK_PAYLOAD_KEPT_BYTES = 16 * KIB  # beside the log, of a message that left its queue
WEBHOOK_SENDS_AT_ONCE = 16  # on request, by one API process
WEBHOOK_KEEPALIVE_MS = 4 * SECOND_MS  # of an idle connection: most servers close theirs after 5
WEBHOOK_STOP_MS = 5 * SECOND_MS  # what a deliverer gives deliveries under way at its end

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

# Who is calling
SIGNATURE_SKEW_MS_MAX = 5 * 60 * SECOND_MS  # between a signer's clock and ours, as at Amazon
PRESIGNED_MS_MAX = 7 * 24 * 3600 * SECOND_MS  # as at Amazon
CREDENTIAL_WORD_CHARACTERS_MAX = 8_192  # of a key or a token: some tokens name many groups
CREDENTIALS_REMEMBERED_MAX = 10_000  # words a process has checked and need not check again
ANONYMOUS_FAILURES_MAX = 1_000  # sockets whose hello has still to say who they are
CREDENTIAL_CHECK_MS = (
    1_000  # between two looks at whether what sockets were opened with still holds
)

# The audit log
AUDIT_TEXT_CHARACTERS_MAX = 512  # of what callers say of themselves and of what they want
AUDIT_SHOWN_BYTES_MAX = 64 * KIB  # of one side of a change; a larger one is told by its digest
AUDIT_ENTRY_MS_MAX = MINUTE_MS  # an entry waits so long for its turn; its intent outlives that
AUDIT_INTENT_MS = 10 * MINUTE_MS  # longer than any call takes: its process did not live to its end
AUDIT_REFUSALS_PER_MINUTE = 60  # of one process: who guesses cannot fill the disk
AUDIT_INTENTS_PER_ROUND = 1_000

# What a log remembers of its writers
IDEMPOTENCY_WINDOW_MS = 10 * MINUTE_MS
KEYS_ASKED_MS = IDEMPOTENCY_WINDOW_MS + MINUTE_MS  # of shards that are closed; clocks may differ
IDEMPOTENCY_KEYS_MAX = 100_000  # per log; beyond it the oldest half is forgotten early
PRODUCER_IDLE_MS = DAY_MS  # as Kafka's producer.id.expiration.ms
PRODUCERS_MAX = 10_000  # per log; beyond it the idle half is forgotten early
PRODUCER_BATCHES_KEPT = 5  # as Kafka's NUM_BATCHES_TO_RETAIN
RISING_PRODUCERS_MAX = 10_000  # per log; one more is refused, since none may be forgotten
RISING_OVER_MS = DAY_MS  # no attempt that was stopped lives longer than this
RISING_OVER_MAX = 100_000  # per log; beyond it the oldest half is forgotten early
RISING_FLOORS_KNOWN_MAX = 10_000  # logs of which a process knows what their ancestors took

# Time series: fine for the last hour, a day by minutes, two weeks by quarters of an hour
SERIES_COLUMNS_CHARACTERS_MAX = 2_000  # of the names of all columns there are, and more
SERIES_STEP_MS = (
    10 * SECOND_MS
)  # what is wrong shows within seconds, and 10 000 queues are measured in time
SERIES_REACH_MS = HOUR_MS
SERIES_CHUNK_SLOTS = (
    60  # ten minutes: of a busy queue some 2 KB, and a chart of an hour is seven chunks
)
SERIES_MINUTE_STEP_MS = MINUTE_MS
SERIES_MINUTE_REACH_MS = DAY_MS
SERIES_MINUTE_CHUNK_SLOTS = 120  # two hours
SERIES_QUARTER_STEP_MS = 15 * MINUTE_MS
SERIES_QUARTER_REACH_MS = 14 * DAY_MS  # last week's same hour, twice
SERIES_QUARTER_CHUNK_SLOTS = 96  # a day
SERIES_LOGS_PER_TICK = (
    20_000  # queues and shards; with more, each is looked at in turn, every second or third step
)
SERIES_LOGS_AT_ONCE = (
    500  # calls of one tick that wait together: other reads of the process come in between
)
SERIES_NAMES_PER_CALL = 500  # samples that one call keeps
SERIES_RATE_STEPS = (
    3  # a rate is told over so many steps at most: after a longer gap it is not known
)
SERIES_CLOCK_SLOTS = 360  # an hour: what was measured further ahead came of a clock that was wrong
SERIES_KNOWN_MS = (
    2 * SECOND_MS
)  # what was last measured, and when, is kept in a process for so long
SERIES_ROWS_PER_PAGE = 5_000  # names and ids alone, of one statement
SERIES_PAGE_MAX = 100  # charts that are read together
OBJECT_METRICS_MAX = 1_000  # queues, streams or groups of one scrape by name: some ten lines each

# Offsets
OFFSET_MAX = 2**53 - 1  # what a double, and so Lua and JavaScript, counts exactly
RESERVATION_OFFSETS_MIN = 10_000
RESERVATION_MS = MINUTE_MS  # a reservation covers a minute of the log's rate

# Work one script call may do beside what it was asked, so that no call stalls the server
DUE_MOVES_PER_CALL = 200
EXPIRED_PER_CALL = 500
SKIPS_PER_CALL = 1_000

# Quotas
NAMESPACES_MAX = 10_000  # every process knows them all
RATE_MIN = 0.001  # a second: one in a quarter of an hour
RATE_MAX = 1e12
BURST_SECONDS_MIN = 0.1
BURST_SECONDS_MAX = 3_600
RESOURCE_RATES_MAX = (
    100  # globs of a namespace: each is looked at when a process first meets a name
)
LEASE_SHARE_SECONDS = 0.1  # of a rate that a process takes at a time: ten round trips a second
LEASE_MS = SECOND_MS  # what a process took and did not spend is void after this
LOW_SHARE = 0.2  # of a bucket: below it callers are told how they stand
POLICIES_KEPT_MAX = 20_000  # callers and resources that a process remembers the policies of
NAMESPACES_AGE_MS_MAX = MINUTE_MS  # all are read again after this, whatever was heard
NAMESPACES_RETRY_MS = SECOND_MS  # before a read that failed is repeated
PLACES_MS = 30 * SECOND_MS  # the connections of a process that was killed count so long
PLACES_SAY_MS = 10 * SECOND_MS
WEIGHED_AT_ONCE = 50  # logs
STORED_BYTES_RETRY_S = 5  # how often a namespace is weighed, so when it may be let in again

# The history of a queue's messages
HISTORY_EVENTS_MAX = 50_000  # of all messages of a queue: some 60 bytes each, 400 at most
HISTORY_LOOKS_MAX = (
    2_000  # of these that one call passes by, as the hot store does nothing else meanwhile
)

# Traces
TRACE_LINKS_MAX = 128  # of one span: as the OpenTelemetry SDK keeps
TRACE_LONG_POLL_MS = (
    SECOND_MS  # a receive that took longer has waited: its span is of what followed
)

# Which processes there are, and who is connected to them
PRESENCE_BEAT_MS = 3 * SECOND_MS  # how often a process says that it is there
PRESENCE_STALE_MS = 10 * SECOND_MS  # one that was silent for three beats is gone
PRESENCE_SOCKETS_MAX = (
    500  # of a process, told with every beat at some 300 bytes each; the rest are counted
)

# The memory guard
GUARD_POLL_MS = SECOND_MS
GUARD_CLOSES_AT = 0.85  # of the store's memory: leases, groups and acknowledgements still find room
GUARD_OPENS_AT = 0.80  # well below, so that writes do not stop and go
GUARD_RETRY_S = 5  # draining a twentieth of the memory takes a while
MEMORY_SHARE = (
    0.5  # of what is granted for the store that `up` starts: its log's rewriting needs room as well
)
MEMORY_BYTES_MIN = 256 * MIB

# In one process
PIPELINE_BACKLOG_MAX = 20_000  # calls waiting for a flush; beyond it the caller hears 503
WRITE_HANDS = 2  # flushes of writes under way at once
SECOND_WORKER_WEIGHT = 32  # weight that waits before the next hand takes it
PART_WEIGHT = 1  # of a part that shares a script call with others
COMMAND_WEIGHT = 32  # of a call of its own, which gains nothing by waiting for company
FLUSH_CALLS_MAX = (
    16  # script calls of one flush: while the store works on them, the next are made ready
)
FLUSH_WEIGHT_MAX = (
    FLUSH_CALLS_MAX * COMMAND_WEIGHT
)  # of one flush, for the same reason: parts may weigh as much as calls
PART_BYTES_SMALL = 16 * KIB  # a larger part weighs as a call of its own
COPIED_BYTES_MAX = 16 * KIB  # what is larger is written as it is, not copied into what is around it
FLUSH_BYTES_MAX = 1 * MIB
REDIS_REPLY_MS_MAX = 5 * SECOND_MS
WAITERS_MAX = 50_000
WAITER_RECHECK_MS = 15 * SECOND_MS  # covers a wake-up that was lost
DEFINITION_AGE_MS_MAX = (
    MINUTE_MS  # a cached definition is read again after this, whatever was heard
)
DEFINITION_NEW_MS = MINUTE_MS  # for so long a sweep looks at what was made or changed each time
DEFINITIONS_CACHED_MAX = 100_000  # of each kind; beyond it the oldest is read again
POSTGRES_REPLY_MS_MAX = 5 * SECOND_MS  # one transaction, or its commit
POSTGRES_CONNECTION_WAIT_MS_MAX = 2 * SECOND_MS  # every connection is in use; then 503
POSTGRES_DECISION_MS_MAX = 30 * SECOND_MS  # deciding the store epoch asks the hot store as well
POSTGRES_MIGRATION_WAIT_MS_MAX = MINUTE_MS  # another process is migrating
LISTEN_CHECK_MS = 5 * SECOND_MS  # how soon a dead LISTEN connection is noticed
LISTEN_GRACE_MS = 5 * SECOND_MS  # what is known stays in use without it: a restart takes less
LISTEN_BACKOFF_MS_MAX = 5 * SECOND_MS
REPAIR_ATTEMPTS_MAX = 8  # times one call may find its log not ready before it gives up
DUTY_MS_MAX = 5 * MINUTE_MS  # one round of a sweep; what is left waits for the next
TOMBSTONE_MS = 10 * MINUTE_MS  # ten times what any cache can be behind

# Credentials
CREDENTIAL_AGE_MS_MAX = (
    30 * SECOND_MS
)  # one that was read is read again after this, whatever was heard
CREDENTIALS_CACHED_MAX = (
    20_000  # and sessions, unknown ids among them; beyond it the oldest is read again
)
CREDENTIAL_ASKS_MAX = (
    200  # ids of one statement: whoever tries ids at random takes one connection, not all
)
CREDENTIAL_BACKLOG_MAX = 2_000  # ids that wait for it; beyond it the caller hears 503
CREDENTIALS_MAX = 10_000  # live ones of one namespace
CREDENTIAL_KEPT_MS = 90 * DAY_MS  # one that ended is listed so long
CREDENTIAL_USED_MS = MINUTE_MS  # how exact the time of the last use is
CREDENTIAL_USED_FLUSH_MS = 2 * SECOND_MS  # uses that are written together
CREDENTIAL_OVERLAP_MS_DEFAULT = DAY_MS  # how long one that was rotated goes on beside the new one
CREDENTIAL_OVERLAP_MS_MAX = 30 * DAY_MS
CREDENTIALS_LIVE_MAX = 2  # of one rotation family
GRANTS_MAX = 100  # of one credential: a decision that is not remembered looks at each
GRANT_WORDS_MAX = 50  # actions, or resources, of one grant
RATE_MAX = 1e12
TICKET_MS = 30 * SECOND_MS  # between asking for a socket's ticket and opening the socket
SESSION_IDLE_MS = 8 * HOUR_MS  # a working day
SESSION_MS_MAX = 24 * HOUR_MS  # then one logs in again
TOKEN_LEEWAY_MS = MINUTE_MS  # clocks differ
TOKEN_SECONDS_MAX = 253_402_300_799  # the year 9999
TOKEN_SUBJECT_CHARACTERS_MAX = 255  # as OpenID Connect
JWKS_FETCH_MS = 5 * SECOND_MS
JWKS_BYTES_MAX = 256 * KIB
JWKS_KEYS_MAX = 100
JWKS_AGE_MS = 5 * MINUTE_MS  # an issuer's keys are read anew after this, beside
JWKS_STALE_MS_MAX = HOUR_MS  # and not used after this, if its issuer cannot be asked
JWKS_PAUSE_MS = 30 * SECOND_MS  # between two questions to an issuer, whatever keys tokens name
JWKS_RETRY_MS = 5 * SECOND_MS  # the same, after one that was not answered
ENDED_PER_CALL = 100  # ended tickets, sessions or credentials that go as a new one is made

# Backups
SNAPSHOT_WAIT_MS_MAX = (
    2 * MINUTE_MS
)  # without a word of the store while it forks, or takes a large key
RESTORE_SKIPS_OFFSETS = (
    1 << 32
)  # what a log may have handed out since its backup; 2^53 holds two million restores


class Limits(msgspec.Struct, frozen=True):
    """The limits a deployment or a test may change; the engines take them as a value."""

    pipeline_backlog_max: int = PIPELINE_BACKLOG_MAX
    write_hands: int = WRITE_HANDS
    redis_reply_ms_max: int = REDIS_REPLY_MS_MAX
    reservation_offsets_min: int = RESERVATION_OFFSETS_MIN
    waiters_max: int = WAITERS_MAX
    hello_ms_max: int = HELLO_MS_MAX
    push_heartbeat_ms: int = PUSH_HEARTBEAT_MS
    push_pong_ms_max: int = PUSH_PONG_MS_MAX
    push_tick_ms: int = PUSH_TICK_MS
    presence_beat_ms: int = PRESENCE_BEAT_MS
    push_kept_bytes: int = PUSH_KEPT_BYTES
    resume_ms: int = RESUME_MS
    slow_consumer_ms: int = SLOW_CONSUMER_MS
    sockets_max: int = SOCKETS_MAX
    waiter_recheck_ms: int = WAITER_RECHECK_MS
    due_moves_per_call: int = DUE_MOVES_PER_CALL
    expired_per_call: int = EXPIRED_PER_CALL
    skips_per_call: int = SKIPS_PER_CALL
    idempotency_keys_max: int = IDEMPOTENCY_KEYS_MAX
    producers_max: int = PRODUCERS_MAX
    rising_producers_max: int = RISING_PRODUCERS_MAX
    outage_ms: int = OUTAGE_MS
    archive_cache_bytes: int = ARCHIVE_CACHE_BYTES
    job_lease_ms: int = JOB_LEASE_MS
    job_heartbeat_ms: int = JOB_HEARTBEAT_MS
    job_backoff_ms: int = JOB_BACKOFF_MS_MIN
    job_poll_ms: int = JOB_POLL_MS
