"""The cache of archive files, and slices of row groups."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from storage.archive.copy_task import archived
from storage.domain import limits
from storage.domain.archive import ArchivedFile, LogRange
from storage.domain.errors import ArchiveDamaged, StorageBusy
from storage.domain.limits import Limits
from storage.domain.log.entry import LogEntry
from storage.domain.log.record_batch import Record, encode_batch
from storage.parquet.cache import ArchiveCache
from storage.parquet.file_writer import FileOf, FileWriter
from storage.parquet.local_store import LocalRoot
from storage.parquet.record_schema import batch_of, records_of
from storage.parquet.row_group_slice import RowGroup
from tests.conditions import PATIENCE_S

WHOSE = LogRange("default", "s1", 0, "l1", 0, 100)


class Watched(LocalRoot):
    """A root that counts its reads and can block them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.reads: list[int] = []
        self.go = Event()
        self.go.set()

    def read(self, path: str, start: int, size: int) -> bytes:
        self.reads.append(start)
        assert self.go.wait(PATIENCE_S)
        return super().read(path, start, size)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Block reads until the block ends."""
        self.go.clear()
        yield
        self.go.set()


@pytest.fixture
def root(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def entries(*runs: range, ms_each: int = 10) -> list[LogEntry]:
    """Make one entry per run of offsets."""
    log_entries = []
    for nth, run in enumerate(runs):
        batch = encode_batch([Record(b"%04d" % offset, f"k{offset}") for offset in run])
        log_entries.append(LogEntry(run.start, nth * ms_each, len(run), len(batch), 0, (batch,)))
    return log_entries


def batch(*runs: range) -> pa.RecordBatch:
    return batch_of(entries(*runs), 0, 2**40, 0)


def written(root: Watched, path: str = "file.parquet", groups: int = 4) -> ArchivedFile:
    """Write a file of the given number of row groups, ten records each."""
    with FileWriter(root, path, FileOf("default", "s1", 0, "0a1b2c3d"), 1) as file:
        for first in range(0, groups * 10, 10):
            part = batch(range(first, first + 10))
            file._group_bytes = 10**9
            file.write(part, 1)
            file._end_group()
        return archived(file.finish(), WHOSE)


@pytest.fixture
async def cache(root: Watched):
    cache = ArchiveCache(root, Limits())
    yield cache
    await cache.close()


# Cache


async def test_concurrent_loads_of_row_group_are_coalesced_and_cached(root, cache):
    file = written(root)
    footer = await cache.footer(file)

    with root.held():
        asked = [asyncio.create_task(cache.group(file, footer, 1)) for _ in range(20)]
        await asyncio.sleep(0)
    results = await asyncio.gather(*asked)
    again = await cache.group(file, footer, 1)

    assert len(root.reads) == 2
    assert all(one is again for one in results)
    assert [one.offset for one in records_of(again.batch)] == list(range(10, 20))


async def test_cancelled_caller_does_not_cancel_shared_load(root, cache):
    file = written(root)
    footer = await cache.footer(file)

    with root.held():
        first, second = (asyncio.create_task(cache.group(file, footer, 0)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
    found = await second

    assert found.batch.num_rows == 10
    assert len(root.reads) == 2


async def test_least_recently_used_row_group_is_evicted(root):
    file = written(root)
    one = batch(range(10)).select(["offset", "ts", "event_ts", "key", "data", "headers"])
    each = limits.ARCHIVE_GROUP_BYTES + one.nbytes
    cache = ArchiveCache(root, Limits(archive_cache_bytes=2 * each + each // 2))
    footer = await cache.footer(file)
    for number in (0, 1, 0, 2):
        await cache.group(file, footer, number)
    root.reads.clear()

    await cache.group(file, footer, 0)
    kept = len(root.reads)
    await cache.group(file, footer, 1)

    assert (kept, len(root.reads)) == (0, 1)
    await cache.close()


async def test_cache_charges_a_minimum_per_row_group(root):
    file = written(root, groups=40)
    cache = ArchiveCache(root, Limits(archive_cache_bytes=10 * limits.ARCHIVE_GROUP_BYTES))
    footer = await cache.footer(file)

    for number in range(40):
        await cache.group(file, footer, number)

    assert 5 <= len(cache._groups._values) <= 10
    await cache.close()


async def test_footers_are_cached_by_size(root, monkeypatch):
    """The footer of a file with many row groups is large."""
    small = [written(root, f"small-{number}.parquet", groups=1) for number in range(8)]
    large = written(root, "large.parquet", groups=40)
    whole = ArchiveCache(root, Limits())
    most = (await whole.footer(large)).bytes_held
    assert most > 5 * (await whole.footer(small[0])).bytes_held
    monkeypatch.setattr(limits, "ARCHIVE_FOOTERS_BYTES", most)

    cache = ArchiveCache(root, Limits())
    for file in (*small, large):
        await cache.footer(file)

    assert [*cache._footers._values] == [large.file_id]
    await whole.close()
    await cache.close()


async def test_row_group_larger_than_cache_is_read(root):
    file = written(root)
    cache = ArchiveCache(root, Limits(archive_cache_bytes=1))
    footer = await cache.footer(file)

    for number in (0, 1, 0):
        assert (await cache.group(file, footer, number)).batch.num_rows == 10
    await cache.close()


async def test_prefetched_row_group_is_not_read_again(root, cache):
    file = written(root)
    cache.read_ahead(file, 2)
    await cache._groups.close()
    footer = await cache.footer(file)

    group = await cache.group(file, footer, 2)

    assert group.batch.num_rows == 10
    assert len(root.reads) == 2


async def test_prefetch_is_skipped_while_reads_are_waiting(root, cache):
    file = written(root)
    footer = await cache.footer(file)

    with root.held():
        waiting = asyncio.create_task(cache.group(file, footer, 0))
        await asyncio.sleep(0)
        cache.read_ahead(file, 1)
    await waiting
    await asyncio.sleep(0.01)

    assert len(root.reads) == 2


async def test_damage_is_reported_to_all_waiters_and_not_cached(root, cache, tmp_path):
    file = written(root)
    footer = await cache.footer(file)
    place = tmp_path / file.path
    sound = place.read_bytes()
    place.write_bytes(sound[:60] + bytes([sound[60] ^ 1]) + sound[61:])

    results = await asyncio.gather(
        *(cache.group(file, footer, 0) for _ in range(3)), return_exceptions=True
    )
    place.write_bytes(sound)

    assert [type(result) for result in results] == [ArchiveDamaged] * 3
    assert (await cache.group(file, footer, 0)).batch.num_rows == 10


async def test_offsets_that_differ_from_manifest_are_damage(root, cache):
    file = written(root)

    with pytest.raises(ArchiveDamaged, match="manifest"):
        await cache.footer(replace(file, next_offset=file.next_offset + 1))


async def test_too_many_concurrent_loads_are_rejected(root, cache):
    files = [written(root, f"{nth}.parquet", 1) for nth in range(limits.ARCHIVE_LOADS_MAX + 5)]

    with root.held():
        asked = [asyncio.create_task(cache.footer(file)) for file in files]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    results = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(isinstance(result, StorageBusy) for result in results) >= 5
    assert not isinstance(results[0], Exception)


# Slices of a row group


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), min_size=1, max_size=6),
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(1, 60),
)
def test_slice_starts_at_offset_and_ends_at_limit_or_hole(gaps, offset, most, bytes_max):
    runs, edge = [], 0
    for skipped, count in gaps:
        runs.append(range(edge + skipped, edge + skipped + count))
        edge = runs[-1].stop
    group = batch(*runs).slice(1)
    offsets = [one.offset for one in records_of(group)]
    later = [one for one in offsets if one >= offset]
    if not later:
        with pytest.raises(IndexError):
            RowGroup(group).part_from(offset, most, bytes_max)
        return

    found = RowGroup(group).part_from(offset, most, bytes_max)

    got = [one.offset for one in found.records()]
    assert (found.first, found.next, len(found)) == (got[0], got[-1] + 1, len(got))
    assert found.data_bytes == 4 * len(got)
    assert got == list(range(later[0], later[0] + len(got)))
    assert 1 <= len(got) <= most
    assert len(got) == 1 or 4 * len(got) <= bytes_max
    full = len(got) == most or 4 * (len(got) + 1) > bytes_max
    assert full or got[-1] + 1 not in offsets


def test_time_is_located_in_row_group():
    group = RowGroup(batch(range(5), range(5, 10), range(20, 25)).slice(2))

    assert [group.offset_since(at) for at in (0, 1, 10, 11, 20)] == [2, 5, 5, 20, 20]
    with pytest.raises(IndexError):
        group.offset_since(21)


def test_slice_decodes_keys_of_dictionary_column(root):
    group = batch(range(1_000)).set_column(
        3, "key", batch(range(1_000)).column("key").dictionary_encode()
    )

    part = records_of(group.slice(500, 3))

    assert [one.record.key for one in part] == ["k500", "k501", "k502"]
