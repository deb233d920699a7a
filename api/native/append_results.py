"""Results of appends: their wire form and metrics."""

from collections.abc import Sequence

from api.native.problems import item_error
from api.native.records import AppendedOut
from api.observability.metric_buffers import ProtocolMetrics, count_rejected
from storage.domain.errors import MillstreamError
from storage.domain.streams.stream import Appended


def appended_out(result: Appended | MillstreamError) -> AppendedOut:
    """Convert the result of one record."""
    if isinstance(result, MillstreamError):
        return AppendedOut(error=item_error(result))
    return AppendedOut(shard=result.shard, offset=result.offset, duplicate=result.duplicate)


def count_appended(metrics: ProtocolMetrics, results: Sequence[Appended | MillstreamError]) -> int:
    """Count accepted and refused records; return the number refused."""
    refused = [result for result in results if isinstance(result, MillstreamError)]
    for error in refused:
        count_rejected(error.code)
    duplicates = sum([isinstance(result, Appended) and result.duplicate for result in results])
    metrics.confirmed(len(results) - len(refused), duplicates)
    return len(refused)
