"""Limits of time series."""

from storage.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

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
