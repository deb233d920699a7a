"""Selection of the records of a chunk for one reader."""

from hypothesis import given
from hypothesis import strategies as st

from consumers.feeds.blocks import Block
from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import LogRecord, ShardRead

RECORDS = st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=40)


def is_keyed(_: int, record: LogRecord) -> bool:
    return record.record.key != ""


@given(RECORDS, st.integers(0, 20), st.integers(0, 2_000), st.booleans())
def test_selection_is_longest_prefix_within_limits(records, records_max, bytes_max, is_filtered):
    log = [
        LogRecord(number, 0, Record(bytes(size), "k" if keyed or not is_filtered else ""))
        for number, (size, keyed) in enumerate(records)
    ]
    chunk = Block(0, ShardRead(0, log, len(log), 0, len(log), 0), {}).chunk(0, len(log))

    part, chosen, selected, data_bytes = chunk.select(
        is_keyed if is_filtered else None, records_max, bytes_max
    )

    done, rest = log[: len(part)], log[len(part) :]
    expected = [record for record in done if is_keyed(0, record)]
    sizes = [len(record.record.data) for record in expected]
    numbers = range(len(part)) if chosen is None else chosen
    assert [log[number] for number in numbers] == expected
    assert (selected, data_bytes) == (len(expected), sum(sizes))
    assert selected <= records_max
    assert sum(sizes[:-1]) < bytes_max or not sizes
    if rest:
        assert is_keyed(0, rest[0])
        assert selected == records_max or data_bytes >= bytes_max
