"""Limits of jobs."""

from storage.domain.limits._shared import DAY_MS, MINUTE_MS, SECOND_MS

# Jobs
JOB_LEASE_MS = 20 * SECOND_MS  # after which another worker does what a killed one had
JOB_ORPHANED_MS = 2 * SECOND_MS  # after which that happens if the worker is not connected
JOB_HEARTBEAT_MS = 5 * SECOND_MS  # a worker also learns then that its job is to be cancelled
JOB_POLL_MS = SECOND_MS  # an idle worker polls again after this
JOB_ATTEMPTS_MAX_DEFAULT = 10
JOB_FAILURE_CHARACTERS_MAX = 2_000
JOB_PARTS_PER_CALL = 1_000
JOB_DELETIONS_PER_CALL = 1_000
JOB_BACKOFF_MS_MIN = SECOND_MS
JOB_BACKOFF_MS_MAX = 5 * MINUTE_MS
JOB_FAILURES_LISTED_MAX = 20
JOB_CAPACITY_NOTED_MS = 5 * SECOND_MS  # a job due for longer waits for a place
JOB_IDLE_MS = 10 * SECOND_MS  # an attempt without progress for so long gives its place back
JOB_WAIT_MS = 5 * SECOND_MS  # then it continues after this
SPARK_EXECUTORS_WAIT_MS = (
    MINUTE_MS  # a cluster without an executor for so long has lost the session
)
SPARK_PROBE_TASKS_MAX = 16  # tasks that look at executors before the first job
SPARK_WATCH_MS = SECOND_MS  # how often a session on a cluster is looked at
SPARK_CANCEL_MS = SECOND_MS  # after which jobs above their time limit are cancelled again
SPARK_BACKOFF_MS = 2 * SECOND_MS  # pause before a new session on a cluster, doubled each time
SPARK_BACKOFF_MS_MAX = MINUTE_MS
JOB_RETENTION_MS = 30 * DAY_MS  # finished jobs can be viewed for this long
JOB_RESULT_RETENTION_MS = DAY_MS  # ended queries, plans and searches, with their results
