"""Limits of views."""

from storage.domain.limits._shared import DAY_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Views
VIEW_JOBS_AT_ONCE = 50  # scans and plans of a worker; a scan is a thread
VIEWS_PER_STREAM_MAX = 100  # they share the reads and the Spark jobs of their stream
VIEW_COLUMNS_CHARACTERS_MAX = 16 * KIB  # of the declared columns of an input
VIEW_OUTPUT_COLUMNS_MAX = 200
VIEW_ROWS_MAX_DEFAULT = 1_000_000
VIEW_ROWS_MAX_MAX = 10_000_000
VIEW_ROW_BYTES_MAX = 256 * KIB  # a row as JSON, and its state
VIEW_KEY_BYTES_MAX = 1_000  # of an encoded key that are ordered; a longer one ends with its digest
VIEW_TRANSACTIONS_AT_ONCE = 4  # of the views of a batch, on the connections of the worker
VIEW_CODEGEN_RECORDS = (
    2_000  # a smaller batch costs less interpreted than its code costs to generate
)
VIEW_PARSE_RECORDS = 2_000  # a batch of 2,000 or more is parsed once for all its views
VIEW_BACKLOG_RECORDS = (
    100_000  # of a batch behind its read, shared by the revisions over a stream: others wait for it
)
VIEW_BACKLOG_BYTES = 32 * MIB  # of these records
VIEW_SCAN_WAIT_MS = 2 * SECOND_MS  # without records, views are looked up again after this
VIEW_BATCHES_MAX = 1_000  # of each revision that are listed
VIEW_BATCH_MS_MAX = MINUTE_MS  # a Spark job that takes longer is cancelled, and counts as a failure
VIEW_PACE_MS = 250  # pause between the batches of a stream whose views have caught up
VIEW_IDLE_MS_DEFAULT = MINUTE_MS
VIEW_WATERMARK_MS_DEFAULT = 10 * MINUTE_MS
VIEW_TIME_MS_MAX = 365 * DAY_MS
VIEW_RESULT_WAIT_MS = 20 * SECOND_MS  # a call waits so long for what a worker computes
VIEW_SOURCES_BATCH = 10_000  # records that are searched for those of a row at once
VIEW_SOURCES_BYTES_MAX = 10 * MIB  # of their data, and of the records that a call returns
VIEW_SOURCES_SEARCHED_MAX = 200_000  # records that a call searches for those of a row
VIEW_FAILURES_MAX = 10  # failed batches in a row, after which a view stops
VIEW_WAIT_MS = 20 * SECOND_MS  # a read waits at most so long for a position
VIEW_SWEEP_ROWS = 10_000  # rows behind `keep` that a batch deletes at most
VIEW_SINKS_MAX = 8  # of a view
VIEW_SINK_MESSAGES = 500  # of a call to a sink
VIEW_SINK_BYTES = 4 * MIB  # of their rows, from which on a call has no more
VIEW_OUTBOX_MAX = 20_000  # messages that wait for a sink, from which on its view waits too
VIEW_SINK_ALERT_PENDING = 10_000  # from which on the dashboard names a sink, before its view waits
VIEW_SINKS_BEHIND_MAX = 20  # of a namespace, that the dashboard looks at
VIEWS_STOPPED_MAX = 20  # of a namespace, that the dashboard looks at
VIEW_FINAL_ROWS = 10_000  # rows that one batch emits as final at most
VIEW_FORMER_MS_MAX = 30 * DAY_MS  # for which a revision that was replaced is kept up to date
VIEW_HISTORY_MS_MAX = 30 * DAY_MS  # for which earlier versions of rows can be read
VIEW_HISTORY_VERSIONS_MAX = 10_000_000  # of a view; the oldest are deleted before their time
VIEW_REPORT_SAMPLES = 20  # rows in which a rebuilt revision differs, that its report shows
VIEW_SAMPLES_BYTES = 64 * KIB  # of the rows in these samples, and in those of each sink
VIEW_SINK_SAMPLES = 5  # messages for each sink, that the result of a back-test shows
VIEW_BACK_TEST_ATTEMPTS_MAX = 3  # that fail in a row
VIEW_SNAPSHOT_MS_MAX = 5 * MINUTE_MS  # in which the present rows are copied for a back-test
VIEW_SWITCH_ROWS = (
    5_000  # rows of two revisions that are compared at once, when one replaces the other
)
VIEW_PRODUCERS_RETIRED = 10  # last revisions of a view whose producers a sink forgets at once
VIEW_STREAMS_MAX = 2  # that a query joins
VIEW_JOIN_RECORDS_MAX = (
    100_000  # of a stream that wait for those that match them, in the memory of a worker
)
VIEW_JOIN_BYTES_MAX = 64 * MIB  # of the columns of these records that the query uses
VIEW_JOIN_MS_MAX = 30 * DAY_MS  # between the event times of records that are joined
VIEW_RELATION_BYTES_MAX = 4 * MIB  # of a table or a side of a join that are a part of Spark's plan
VIEW_TABLES_MAX = 4  # of a query
VIEW_TABLE_ROWS_MAX = 100_000  # keys of a table, or rows of a view, in the memory of a worker
VIEW_TABLE_BYTES_MAX = 64 * MIB  # of their data
