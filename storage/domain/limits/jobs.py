"""Limits of jobs."""

from storage.domain.units import DAY_MS, MINUTE_MS, SECOND_MS

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
