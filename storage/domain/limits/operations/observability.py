"""Limits of time series, alerts and traces."""

from storage.domain.limits._shared import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

# Time series: 10 s for the last hour, 15 min for two weeks
SERIES_COLUMNS_CHARACTERS_MAX = 2_000  # longer than the names of all existing columns
SERIES_STEP_MS = (
    10 * SECOND_MS
)  # problems show within seconds, and there is time to measure 10,000 queues
SERIES_RETENTION_MS = HOUR_MS
SERIES_CHUNK_SLOTS = (
    90  # a quarter of an hour, which one row of the longer ring is made of: 5 KB for a busy queue
)
SERIES_QUARTER_STEP_MS = 15 * MINUTE_MS
SERIES_QUARTER_RETENTION_MS = 14 * DAY_MS  # the same hour of last week, twice
SERIES_QUARTER_CHUNK_SLOTS = 96  # a day
SERIES_LOGS_PER_TICK = (
    20_000  # queues and shards; if there are more, each is measured every second or third step
)
SERIES_MEASURE_CONCURRENCY_MAX = (
    500  # concurrent calls of one tick: other reads of the process run in between
)
SERIES_NAMES_PER_CALL = 500  # samples that one call stores
SERIES_RATE_STEPS = 3  # a rate covers at most this many steps: after a longer gap it is unknown
SERIES_CLOCK_SLOTS = 360  # an hour: samples further ahead were measured with a wrong clock
SERIES_CACHE_MS = 2 * SECOND_MS  # how long a process caches the latest samples and their times
SERIES_WEEKS_CACHE_MS = MINUTE_MS  # how long a process caches what lies more than an hour back
SERIES_WEEKS_CACHED_MAX = 64  # histories of that kind in a process; 400 KB each for a busy queue
SERIES_ROWS_PER_PAGE = 5_000  # names and ids only, per statement
SERIES_PAGE_MAX = 100  # charts that are read together
OBJECT_METRICS_MAX = (
    1_000  # queues, streams or groups listed by name per scrape: about ten lines each
)

# Alerts
GROWTH_WINDOW_MS = 5 * MINUTE_MS  # over which the growth of what waits is measured
ALERT_MUTES_MAX = 1_000  # of a namespace
ALERT_MUTE_MS_MIN = MINUTE_MS
ALERT_MUTE_MS_MAX = 30 * DAY_MS  # a mute without an end would be forgotten
ALERT_OBJECT_CHARACTERS_MAX = 256

# Traces
TRACE_LINKS_MAX = 128  # per span, as in the OpenTelemetry SDK
TRACE_LONG_POLL_MS = (
    SECOND_MS  # a receive that took longer has waited: its span covers only the work after the wait
)
