"""Archive files: encoding round trips, footers, and detection of damage."""

import hashlib
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import ArchiveDamaged
from storage.domain.log.entry import LogEntry, log_bytes
from storage.domain.log.record_batch import Record, decode_batches, encode_batch
from storage.domain.streams.stream import LogRecord, hash_key
from storage.parquet.file_reader import read_group, verify_file
from storage.parquet.file_writer import FileOf, FileWriter, WrittenFile
from storage.parquet.footer import read_footer, read_unverified_footer
from storage.parquet.local_store import LocalRoot
from storage.parquet.paths import file_path, new_attempt, offsets_in
from storage.parquet.record_schema import SCHEMA, batch_of, records_of

OF = FileOf("default", "0123456789abcdef", 3, "0a1b2c3d")
NOON = 1_700_000_000_000
SMALL = 2_000

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
HEADERS = st.lists(
    st.tuples(TEXT, st.sampled_from(["", "String", "Number.int", "Binary"]), st.binary(max_size=5)),
    max_size=3,
).map(tuple)
RECORDS = st.builds(
    Record,
    data=st.binary(max_size=40),
    key=st.just("") | TEXT,
    headers=st.just(()) | HEADERS,
    event_time_ms=st.none() | st.integers(-(2**40), 253_402_300_799_999),
)
PLAIN = st.builds(Record, data=st.binary(max_size=40))


@st.composite
def logs(draw) -> list[LogEntry]:
    """Entries of one to three batches, with holes between some of them."""
    entries, offset, ms, size = [], draw(st.integers(0, 2**52)), NOON, 0
    parts = st.lists(st.lists(RECORDS | PLAIN, min_size=1, max_size=5), min_size=1, max_size=3)
    for batches in draw(st.lists(parts, min_size=1, max_size=6)):
        entries.append(entry(offset, ms, size, *batches))
        size += entries[-1].size_bytes
        offset = entries[-1].next + draw(st.sampled_from([0, 0, 7]))
        ms += draw(st.integers(0, 5_000))
    return entries


def entry(offset: int, ms: int, before: int, *batches: list[Record]) -> LogEntry:
    encoded = tuple(map(encode_batch, batches))
    count = sum(map(len, batches))
    return LogEntry(offset, ms, count, sum(map(len, encoded)), before, encoded)


def decoded_records(entries: list[LogEntry]) -> list[LogRecord]:
    """Decode the records of a log directly."""
    return [
        LogRecord(each_entry.first + nth, each_entry.arrival_ms, record)
        for each_entry in entries
        for nth, record in enumerate(decode_batches(each_entry.batches))
    ]


def write(folder: Path, batches: list[pa.RecordBatch], group_bytes: int = SMALL) -> WrittenFile:
    path = file_path(
        "default",
        stream_id=OF.stream_id,
        shard=3,
        arrival_ms=NOON,
        first=0,
        next_=1,
        attempt=new_attempt(),
    )
    with FileWriter(LocalRoot(str(folder)), path, OF, group_bytes) as file:
        for batch in batches:
            file.write(batch, batch.num_rows)
        return file.finish()


def read_all(folder: Path, written: WrittenFile) -> list[LogRecord]:
    root = LocalRoot(str(folder))
    footer = read_footer(root, written.path, written.file_bytes, written.digest)
    groups = [read_group(root, footer, nth) for nth in range(len(footer.facts.groups))]
    return [record for batch in groups for record in records_of(batch)]


def many(count: int, seed: int = 1) -> list[LogEntry]:
    """Make a log of small entries that spans several row groups."""
    chance = random.Random(seed)
    entries, offset = [], 0
    while offset < count:
        batch = [
            Record(
                chance.randbytes(chance.randrange(80)),
                f"key-{chance.randrange(20)}",
                event_time_ms=NOON,
            )
            for _ in range(chance.randrange(1, 30))
        ]
        entries.append(entry(offset, NOON + offset, 0, batch))
        offset += len(batch)
    return entries


# Round trips


@given(logs())
def test_log_entries_round_trip_through_arrow(entries):
    batch = batch_of(entries, 0, 2**53, 2)

    assert batch.schema.equals(SCHEMA)
    batch.validate(full=True)
    assert records_of(batch) == decoded_records(entries)
    assert set(batch.column("log_epoch").to_pylist()) == {2}


@given(logs(), st.data())
def test_range_can_start_and_end_inside_entries(entries, data):
    edges = st.integers(entries[0].first - 1, entries[-1].next + 1)
    low, high = sorted((data.draw(edges), data.draw(edges)))

    records = records_of(batch_of(entries, low, high, 0))

    assert records == [value for value in decoded_records(entries) if low <= value.offset < high]


@given(logs(), st.integers(1, 4), st.integers(1, 3_000))
def test_records_round_trip_through_file(tmp_path_factory, entries, parts, group_bytes):
    folder = tmp_path_factory.mktemp("archive")
    batch = batch_of(entries, 0, 2**53, 0)
    share = -(-batch.num_rows // parts)
    cut = [batch.slice(start, share) for start in range(0, batch.num_rows, share)]

    written = write(folder, cut, group_bytes)

    assert read_all(folder, written) == decoded_records(entries)
    verify_file(LocalRoot(str(folder)), written.path, written.file_bytes, written.digest)


@given(logs(), st.data())
def test_log_bytes_of_adjacent_ranges_add_up(entries, data):
    low, high = entries[0].first, entries[-1].next
    cut = data.draw(st.integers(low, high))

    counted = log_bytes(entries, low, cut) + log_bytes(entries, cut, high)

    assert counted == sum(each_entry.size_bytes for each_entry in entries)


def test_hash_columns_hold_the_hash_key_of_the_key():
    batch = batch_of([entry(0, 1, 0, [Record(b"", "k"), Record(b""), Record(b"", "clé")])], 0, 3, 0)

    halves = zip(*(batch.column(name).to_pylist() for name in ("hash_hi", "hash_lo")), strict=True)

    place, none, other = halves
    assert none == (None, None)
    assert (place[0] % 2**64) << 64 | place[1] % 2**64 == hash_key("k")
    assert (other[0] % 2**64) << 64 | other[1] % 2**64 == hash_key("clé")


def test_keys_that_overflow_the_dictionary_round_trip(tmp_path):
    records = [Record(b"x", f"{nth:0200d}") for nth in range(12_000)]
    entries = [
        entry(first, NOON, 0, records[first : first + 1_000]) for first in range(0, 12_000, 1_000)
    ]

    written = write(tmp_path, [batch_of(entries, 0, 12_000, 0)], 2**30)

    assert read_all(tmp_path, written) == decoded_records(entries)


# Files


def test_footer_describes_contents_of_file(tmp_path):
    entries = many(2_000)
    batch = batch_of(entries, 5, 1_500, 0)

    written = write(tmp_path, [batch])

    footer = read_unverified_footer(LocalRoot(str(tmp_path)), written.path)
    groups = footer.facts.groups
    assert (written.first_offset, written.next_offset, written.records) == (5, 1_500, 1_495)
    assert (footer.digest, footer.file_bytes) == (written.digest, written.file_bytes)
    assert (footer.facts.content, footer.facts.log_bytes) == (written.content, 1_495)
    assert (footer.facts.stream_id, footer.facts.shard, footer.facts.attempt) == (
        OF.stream_id,
        3,
        OF.attempt,
    )
    assert len(groups) > 10
    assert [group.first_offset for group in groups[1:]] == [
        group.next_offset for group in groups[:-1]
    ]
    assert sum(group.records for group in groups) == 1_495


def test_row_group_is_located_by_offset_and_by_time(tmp_path):
    written = write(tmp_path, [batch_of(many(2_000), 100, 1_500, 0)])
    footer = read_unverified_footer(LocalRoot(str(tmp_path)), written.path)
    groups = footer.facts.groups

    assert footer.group_at(0) == footer.group_since(0) == 0
    for nth, group in enumerate(groups):
        assert footer.group_at(group.first_offset) == footer.group_at(group.next_offset - 1) == nth
        since = footer.group_since(group.last_arrival_ms)
        assert since <= nth
        assert groups[since].last_arrival_ms == group.last_arrival_ms


def test_content_digest_is_independent_of_row_groups(tmp_path):
    batch = batch_of(many(500), 0, 500, 0)

    whole = write(tmp_path, [batch], 2**30)
    parts = write(tmp_path, [batch.slice(0, 7), batch.slice(7)], 500)
    other = write(tmp_path, [batch.slice(0, 499)], 2**30)

    assert whole.content == parts.content != other.content
    assert whole.digest != parts.digest


def test_file_is_readable_as_plain_parquet(tmp_path):
    entries = many(300)
    written = write(tmp_path, [batch_of(entries, 0, 300, 0)])

    file = pq.ParquetFile(tmp_path / written.path, page_checksum_verification=True)

    assert (
        file.read().column("data").to_pylist()
        == [value.record.data for value in decoded_records(entries)][:300]
    )
    column = file.metadata.row_group(0).column(3)
    assert (column.path_in_schema, column.compression) == ("key", "ZSTD")
    assert column.has_offset_index
    assert column.has_column_index


def test_records_out_of_order_are_rejected(tmp_path):
    batch = batch_of([entry(0, 1, 0, [Record(b"a"), Record(b"b")])], 0, 2, 0)
    backwards = batch.take(pa.array([1, 0]))

    with pytest.raises(ValueError, match="increase"):
        write(tmp_path, [batch, batch])
    with pytest.raises(ValueError, match="increase"):
        write(tmp_path, [backwards])
    with pytest.raises(ValueError, match="at least one"):
        write(tmp_path, [batch.slice(0, 0)])


def test_unfinished_file_leaves_nothing(tmp_path):
    batch = batch_of(many(500), 0, 500, 0)
    root = LocalRoot(str(tmp_path))

    def break_off() -> None:
        with FileWriter(root, "a/b.parquet", OF, SMALL) as file:
            file.write(batch, 1)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        break_off()
    assert [*root.files("")] == []


def test_path_contains_hour_shard_and_offsets():
    path = file_path(
        "default",
        stream_id="0123456789abcdef",
        shard=3,
        arrival_ms=NOON,
        first=5,
        next_=10,
        attempt="0a1b2c3d",
    )

    assert path == (
        "default/0123456789abcdef/v1/dt=2023-11-14/hr=22/shard=000000000003/"
        "00000000000000000005-00000000000000000010-0a1b2c3d.parquet"
    )
    assert offsets_in(path) == (5, 10)
    assert offsets_in("default/other.parquet") is None


# Damage


def damaged(folder: Path, written: WrittenFile, bytes_: bytes) -> list[LogRecord] | None:
    """Overwrite the file and read it; None for ArchiveDamaged."""
    (folder / written.path).write_bytes(bytes_)
    try:
        return read_all(folder, written)
    except ArchiveDamaged:
        return None


def test_bit_flips_never_yield_other_records(tmp_path):
    entries = many(600)
    written = write(tmp_path, [batch_of(entries, 0, 2**53, 0)], 20_000)
    sound = (tmp_path / written.path).read_bytes()
    footer = read_unverified_footer(LocalRoot(str(tmp_path)), written.path)
    read = {0: 0, 1: 0}
    held = [range(one.start, one.start + one.bytes) for one in footer.facts.groups]
    chance = random.Random(5)

    for place in chance.sample(range(len(sound)), 1_500):
        flipped = bytearray(sound)
        flipped[place] ^= 1 << chance.randrange(8)
        found = damaged(tmp_path, written, bytes(flipped))
        unread = not any(place in one for one in held) and place < len(sound) - 8 - len(footer.raw)
        assert (found is None) is not unread, place
        assert found is None or found == decoded_records(entries)
        read[unread] += 1

    assert read[0] > 500
    assert read[1] > 0


@pytest.mark.parametrize("size", [0, 3, 11, 12, 500, -1])
def test_truncated_file_is_damaged(tmp_path, size):
    written = write(tmp_path, [batch_of(many(300), 0, 300, 0)])
    sound = (tmp_path / written.path).read_bytes()

    assert damaged(tmp_path, written, sound[:size]) is None
    assert damaged(tmp_path, written, sound + b"x") is not None
    with pytest.raises(ArchiveDamaged):
        verify_file(LocalRoot(str(tmp_path)), written.path, written.file_bytes, written.digest)


def test_missing_file_is_damaged(tmp_path):
    written = write(tmp_path, [batch_of(many(300), 0, 300, 0)])
    root = LocalRoot(str(tmp_path))
    footer = read_unverified_footer(root, written.path)

    root.delete(written.path)

    with pytest.raises(ArchiveDamaged, match="missing"):
        read_group(root, footer, 0)
    with pytest.raises(ArchiveDamaged, match="missing"):
        read_unverified_footer(root, written.path)


def test_replaced_file_is_detected(tmp_path):
    written = write(tmp_path, [batch_of(many(300), 0, 300, 0)])
    other = write(tmp_path, [batch_of(many(300, seed=2), 0, 300, 0)])

    assert damaged(tmp_path, written, (tmp_path / other.path).read_bytes()) is None


def test_swapped_row_groups_are_detected(tmp_path):
    """Row groups of the same size swapped within a file, as by a store that mixes up blocks."""
    batch = batch_of(
        [entry(0, NOON, 0, [Record(bytes([nth % 7]) * 30) for nth in range(512)])], 0, 512, 0
    )
    written = write(tmp_path, [batch.slice(start, 64) for start in range(0, 512, 64)], 1)
    sound = bytearray((tmp_path / written.path).read_bytes())
    one, two = read_unverified_footer(LocalRoot(str(tmp_path)), written.path).facts.groups[1:3]

    assert hashlib.sha256(sound[one.start : one.start + one.bytes]).hexdigest() == one.digest
    if one.bytes == two.bytes:
        low, high = sound[one.start : two.start], sound[two.start : two.start + two.bytes]
        sound[one.start : two.start + two.bytes] = high + low
    else:
        sound[one.start : one.start + 4] = b"\0\0\0\0"

    assert damaged(tmp_path, written, bytes(sound)) is None
