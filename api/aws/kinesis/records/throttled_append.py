"""Append limited to the throughput of Amazon's shards, if the deployment enables that."""

from collections.abc import Sequence
from typing import Any

from api.aws.kinesis.call_helpers import now_ms, process_state, shard_id
from api.aws.kinesis.errors import THROUGHPUT_EXCEEDED
from api.aws.kinesis.records.put_results import Result
from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import Appended, Shard, Stream, hash_key


async def append_throttled(
    call: AwsCall[Any],
    stream: Stream,
    records: Sequence[Record],
) -> Sequence[Result]:
    """Append; a record that exceeds its shard's rate is refused, and the others are added."""
    shard_limits = process_state(call).shard_limits
    append = call.storage.streams.append
    if not shard_limits.limited:
        return await append(stream.name, records)
    now_s = now_ms(call) / 1_000
    results: list[Result] = []
    for record in records:
        position = hash_key(record.key) if record.hash_key is None else record.hash_key
        shard = next(one for one in stream.open_shards if one.takes(position))
        fits = shard_limits.write((stream.stream_id, shard.index), record.size_bytes, now_s)
        results.append(_ADMITTED if fits else _too_fast(shard, stream))
    admitted = [nth for nth, one in enumerate(results) if one is _ADMITTED]
    if admitted:
        chosen = [records[nth] for nth in admitted]
        appended = await append(stream.name, chosen)
        for nth, result in zip(admitted, appended, strict=True):
            results[nth] = result
    return results


_ADMITTED = Appended(0, 0)


def _too_fast(shard: Shard, stream: Stream) -> AwsError:
    return AwsError(
        THROUGHPUT_EXCEEDED,
        f"Rate exceeded for shard {shard_id(shard.index)} in stream {stream.name.name}.",
    )
