"""Archive files that are damaged, missing, compacted, shared or in an object store."""

import asyncio
from pathlib import Path

import pytest

from storage.archive.compact_task import compact_files
from storage.bootstrap import open_storage
from storage.domain.errors import ArchiveDamaged
from storage.domain.jobs import JobKind
from storage.domain.streams.stream import ReadFrom
from storage.parquet.local_store import LocalRoot
from storage.parquet.object_store import open_root
from storage.settings import StorageSettings
from tests.integration.archive.tiers.tier_reads import HOUR, NOTHING_HOT, offsets, read, read_on
from tests.tiered_stream import CLICKS, append, move_to_archive

pytestmark = pytest.mark.one_store


def only_file(settings: StorageSettings) -> Path:
    [path] = Path((settings.archive_url or "").removeprefix("file://")).rglob("*.parquet")
    return path


async def test_damaged_file_is_never_skipped(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    await append(engines, 5)
    file = only_file(settings)
    sound = file.read_bytes()
    file.write_bytes(sound[:40] + bytes([sound[40] ^ 1]) + sound[41:])

    for where in (ReadFrom(offset=0), ReadFrom(offset=9), ReadFrom(time_ms=0), ReadFrom(tail=8)):
        with pytest.raises(ArchiveDamaged):
            await read(engines, where)
    with pytest.raises(ArchiveDamaged):
        await engines.record_reader.read(CLICKS, {})
    assert offsets(await read(engines, ReadFrom(offset=10))) == [10, 11, 12, 13, 14]

    file.write_bytes(sound)
    assert offsets(await read(engines, ReadFrom(offset=9)))[0] == 9


async def test_missing_file_is_damage_and_not_gap(engines, settings):
    await append(engines, 10)
    await move_to_archive(engines, settings)
    only_file(settings).unlink()

    with pytest.raises(ArchiveDamaged, match="missing"):
        await read(engines, ReadFrom(offset=0))


async def test_concurrent_readers_load_row_group_once(engines, settings, monkeypatch):
    await append(engines, 500)
    await move_to_archive(engines, settings)
    asked = []
    fetch = LocalRoot.read

    def note(root, path, start, size):
        asked.append(start)
        return fetch(root, path, start, size)

    monkeypatch.setattr(LocalRoot, "read", note)

    reads = await asyncio.gather(
        *(read(engines, ReadFrom(offset=first), records_max=10) for first in range(0, 500, 10))
    )

    assert [offset for each_read in reads for offset in offsets(each_read)] == list(range(500))
    assert len(asked) == 2  # the footer, and the row group


async def test_archive_in_object_store_is_readable(redis_url, database_url, clock, s3_url):
    settings = StorageSettings(redis_url=redis_url, database_url=database_url, archive_url=s3_url)
    async with open_storage(settings, clock=clock) as engines:
        await engines.catalog.put_stream(CLICKS, NOTHING_HOT)
        await append(engines, 10)
        await move_to_archive(engines, settings)
        await append(engines, 5)

        reads = await read_on(engines, 0, 6)

        assert [offset for each_read in reads for offset in offsets(each_read)] == list(range(15))
        [file] = open_root(s3_url).files("")
        open_root(s3_url).delete(file.path)
    async with open_storage(settings, clock=clock) as engines:
        with pytest.raises(ArchiveDamaged):
            await read(engines, ReadFrom(offset=0))


async def test_compacted_files_are_read_like_their_parts(engines, settings, clock):
    for _ in range(5):
        await append(engines, 4)
        await move_to_archive(engines, settings)
    first = await read(engines, ReadFrom(offset=0), records_max=6)
    clock.advance(ms=2 * HOUR)

    root, key = open_root(settings.archive_url), (await engines.catalog.stream(CLICKS)).stream_id
    [run] = await engines.archive_planner.to_compact("default")
    await engines.archive_planner.plan_compaction()
    claimed = await engines.jobs.claim("test", [JobKind.COMPACT])
    joined = compact_files(root, "default", run)
    await engines.archive_committer.commit_compaction(claimed.claim, [(run, joined)], {})

    rest = await read(engines, ReadFrom(offset=first.next_offset))
    async with open_storage(settings, clock=clock) as other:
        anew = await read(other, ReadFrom(offset=0))
    assert joined.stream_id == key
    assert offsets(first) + offsets(rest) == offsets(anew) == list(range(20))
