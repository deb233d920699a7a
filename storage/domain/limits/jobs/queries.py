"""Limits of queries."""

from storage.domain.limits._shared import MIB, MINUTE_MS, SECOND_MS

# Queries
QUERY_RELATIONS_MAX = 8  # streams, tables and views that a query names
QUERY_ROWS_DEFAULT = 1_000
QUERY_ROWS_MAX = 10_000
QUERY_RESULT_BYTES_MAX = 4 * MIB  # of the rows as JSON; a larger result is truncated
QUERY_MS_DEFAULT = MINUTE_MS
QUERY_MS_MAX = 5 * MINUTE_MS  # its Spark jobs are cancelled then
QUERY_WAIT_MS = 20 * SECOND_MS  # a call waits so long for the rows
QUERY_ATTEMPTS_MAX = 2  # what has killed a worker twice is not tried again
QUERIES_OPEN_MAX = 20  # of a namespace, those that wait included
QUERIES_AT_ONCE = 2  # of a worker, beside its other jobs
QUERY_VIEW_ROWS_MAX = 100_000  # of a view that a query reads, in the memory of the worker
QUERY_VIEW_BYTES_MAX = 64 * MIB  # of these rows
QUERY_SMALL_RECORDS = 20_000  # fewer are read by the worker's process, without Spark tasks
QUERY_SMALL_BYTES = 16 * MIB  # of these records
QUERY_PIECE_RECORDS = 20_000  # of a range that a task reads at once
QUERY_PIECES_MAX = 1_000  # of a relation: each task has the list; above, pieces are larger
QUERY_READ_BYTES = MIB  # of a call, of which a task has a few in memory
QUERY_TASKS_PER_SLOT = 4  # a slot that waits for the last task of a query loses a fourth at most
