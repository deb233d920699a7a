"""Options of `spark.read`, `readStream`, `write` and `writeStream`.

url                     the address of Millstream; else MILLSTREAM_URL in the environment
stream                  the stream's name
apiKey                  else MILLSTREAM_API_KEY in the environment, which no plan or log shows
startingOffsets         earliest (of a batch, the default), latest (of a stream query, the default), or offsets by
endingOffsets           shard: {"0": 120, "1": 7}; a batch ends at latest, the default, or at such offsets
startingTime            records that arrived then or later: ISO 8601, or milliseconds since 1970
endingTime              of a batch: records that arrived before
shards                  only these: "0,3"
recordsPerPartition     of one task at most, 1 000 000 by default
maxRecordsPerTrigger    of one micro-batch at most
failOnDataLoss          true by default: fail when records that should have been read no longer exist, or
                        another stream has the name; with false, such a stream is read from its oldest record
pushFilters             true: filters on shard and offset are applied before reading; needs the session's
                        spark.sql.python.filterPushdown.enabled
writerId                of a sink: a name for the writer, the same at each run; a stream query needs one
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark_millstream.errors import OptionError

RECORDS_PER_PARTITION = 1_000_000

_OPTION_NAMES = frozenset(
    text.lower()
    for text in (
        *(
            "url",
            "stream",
            "apiKey",
            "startingOffsets",
            "endingOffsets",
            "startingTime",
            "endingTime",
        ),
        *("shards", "recordsPerPartition", "maxRecordsPerTrigger", "failOnDataLoss", "pushFilters"),
        *("writerId", "path", "checkpointLocation"),
    )
)

Offsets = str | dict[int, int]
"""earliest, latest, or offsets by shard."""


@dataclass(frozen=True)
class Options:
    """Parsed and checked options; times are milliseconds since 1970."""

    url: str
    stream: str
    api_key: str | None = None
    starting_offsets: Offsets | None = None
    ending_offsets: Offsets | None = None
    starting_time_ms: int | None = None
    ending_time_ms: int | None = None
    shards: frozenset[int] | None = None
    records_per_partition: int = RECORDS_PER_PARTITION
    records_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    push_filters: bool = False
    writer_id: str | None = None

    def takes(self, shard: int) -> bool:
        """Return whether the shard is selected."""
        return self.shards is None or shard in self.shards


def read_options(given: Mapping[str, str]) -> Options:
    """Parse the options as Spark passes them.

    Raises OptionError.
    """
    values = {name.lower(): value for name, value in given.items()}
    unknown = sorted(values.keys() - _OPTION_NAMES)
    if unknown:
        raise OptionError(f"unknown option {unknown[0]!r}")
    url = values.get("url") or os.environ.get("MILLSTREAM_URL")  # noqa: TID251  a user's program, not ours
    if not url:
        raise OptionError("option 'url' is required: the address of the Millstream service")
    stream = values.get("stream") or values.get("path")
    if not stream:
        raise OptionError("option 'stream' is required: the name of the stream")
    start, start_time = values.get("startingoffsets"), values.get("startingtime")
    if start and start_time:
        raise OptionError("set only one of 'startingOffsets' and 'startingTime'")
    end, end_time = values.get("endingoffsets"), values.get("endingtime")
    if end and end_time:
        raise OptionError("set only one of 'endingOffsets' and 'endingTime'")
    options = Options(
        url=url.rstrip("/"),
        stream=stream,
        api_key=values.get("apikey") or os.environ.get("MILLSTREAM_API_KEY"),  # noqa: TID251
        starting_offsets=_offsets("startingOffsets", start),
        ending_offsets=_offsets("endingOffsets", end),
        starting_time_ms=_time("startingTime", start_time),
        ending_time_ms=_time("endingTime", end_time),
        shards=_shards(values.get("shards")),
        records_per_partition=_positive(values, "recordsPerPartition") or RECORDS_PER_PARTITION,
        records_per_trigger=_positive(values, "maxRecordsPerTrigger"),
        fail_on_data_loss=_truth(values, "failOnDataLoss", default=True),
        push_filters=_truth(values, "pushFilters", default=False),
        writer_id=values.get("writerid"),
    )
    _check_order(options)
    return options


def _check_order(options: Options) -> None:
    """Raise OptionError for an end that lies before the start."""
    start, end = options.starting_offsets, options.ending_offsets
    if isinstance(start, dict) and isinstance(end, dict):
        for shard in sorted(start.keys() & end.keys()):
            if start[shard] > end[shard]:
                detail = f"offset {start[shard]} of shard {shard} lies behind offset {end[shard]}"
                raise OptionError(f"'startingOffsets': {detail} of 'endingOffsets'")
    if (start, end) == ("latest", "earliest"):
        raise OptionError("'startingOffsets' latest lies behind 'endingOffsets' earliest")
    start_ms, end_ms = options.starting_time_ms, options.ending_time_ms
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        raise OptionError("'startingTime' lies behind 'endingTime'")


def _offsets(name: str, text: str | None) -> Offsets | None:
    if text is None or text in ("earliest", "latest"):
        return text
    try:
        parsed = json.loads(text)
        offsets = {int(shard): offset for shard, offset in parsed.items()}
    except (ValueError, AttributeError):
        raise OptionError(f"{name!r} must be earliest, latest or offsets by shard") from None
    if not offsets or not all(type(offset) is int and offset >= 0 for offset in offsets.values()):
        raise OptionError(f"{name!r}: an offset must be an integer of at least 0")
    return offsets


def _time(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(f"{name!r} must be an ISO 8601 time or milliseconds since 1970") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _shards(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise OptionError("'shards' must be comma-separated numbers of at least 0")
    return frozenset(map(int, numbers))


def _positive(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name.lower())
    if text is None:
        return None
    if not text.isdigit() or int(text) == 0:
        raise OptionError(f"{name!r} must be an integer of at least 1")
    return int(text)


def _truth(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = values.get(name.lower())
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name!r} must be true or false")
    return text.lower() == "true"
