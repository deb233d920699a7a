"""Backups that include the archive's files, and backups in one tarball."""

import asyncio
import stat
import tarfile
from collections.abc import Iterator

import psycopg
import pytest

from storage.archive.verify import open_archive_check
from storage.backup import archive_files, backup, restore
from storage.backup.tarball import unpack
from storage.bootstrap import open_storage
from storage.domain.backup_manifest import FOLDER_OF_ARCHIVE, BackupError
from storage.domain.clock import SystemClock
from storage.domain.errors import ArchiveOff, StorageUnavailable
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.embedded.valkey import running_valkey
from storage.parquet.object_store import open_root
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream
from tests.arrow import arrow_stream
from tests.databases import fresh_database

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
VERSION = "0.1.0"


@pytest.fixture
def source(redis_url, database_url, tmp_path) -> StorageSettings:
    return StorageSettings(
        redis_url=redis_url,
        database_url=database_url,
        archive_url=(tmp_path / "archive").as_uri(),
    )


@pytest.fixture
def target(short_folder, postgres_server_url, tmp_path) -> Iterator[StorageSettings]:
    """Two empty stores, and a directory for an archive."""
    with (
        fresh_database(postgres_server_url, "template1") as database_url,
        running_valkey(short_folder) as redis_url,
    ):
        yield StorageSettings(
            redis_url=redis_url,
            database_url=database_url,
            archive_url=(tmp_path / "restored").as_uri(),
        )


async def with_history(storage, settings):
    """Create a stream with archived and unarchived records."""
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"old")])
    await archive_stream(storage, settings, CLICKS)
    await storage.streams.append_to_shard(CLICKS, 0, [Record(b"new")])


async def backed_up(source, target, **options):
    return await asyncio.to_thread(
        backup.backup, source, target, SystemClock(), VERSION, with_archive=True, **options
    )


async def restored(target, place):
    def restored_again():
        with unpack(place) as folder:
            return restore.restore(target, folder, "bundled")

    return await asyncio.to_thread(restored_again)


async def checked(settings):
    async with open_archive_check(settings) as check:
        return [shard async for shard in check.shards()]


@pytest.mark.parametrize("name", ["backup", "backup.tar"])
async def test_restored_deployment_has_its_archive(source, target, tmp_path, name):
    async with open_storage(source) as storage:
        await with_history(storage, source)
        staged = await storage.staged_writes.stage(CLICKS, arrow_stream([b"put aside"]))
    manifest = await backed_up(source, tmp_path / name)

    await restored(target, tmp_path / name)

    [shard] = await checked(target)
    async with open_storage(target) as storage:
        read = await storage.record_reader.read_shard(CLICKS, 0, ReadFrom(offset=0))
        write = await storage.staged_writes.commit(CLICKS, "writer", 0, [staged])
    assert manifest.archived == 2
    assert (shard.records, shard.faults) == (1, [])
    assert [record.record.data for record in read.records] == [b"old", b"new"]
    assert write.done


async def test_tarball_is_private_and_starts_with_manifest(source, tmp_path):
    async with open_storage(source) as storage:
        await with_history(storage, source)

    await backed_up(source, tmp_path / "backup.tar")

    with tarfile.open(tmp_path / "backup.tar") as tar:
        names = tar.getnames()
    assert stat.S_IMODE((tmp_path / "backup.tar").stat().st_mode) == 0o600
    assert names[0] == "manifest.json"
    assert sum(name.startswith(FOLDER_OF_ARCHIVE) for name in names) == 1
    assert [place.name for place in tmp_path.iterdir() if place.name.startswith(".")] == []


async def test_truncated_tarball_restores_nothing(source, target, tmp_path):
    place = tmp_path / "backup.tar"
    async with open_storage(source) as storage:
        await with_history(storage, source)
    await backed_up(source, place)
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])

    with pytest.raises(BackupError):
        await restored(target, place)

    assert [*open_root(target.archive_url).files("")] == []


async def test_missing_archive_file_fails_backup(source, tmp_path):
    async with open_storage(source) as storage:
        await with_history(storage, source)
    [file] = open_root(source.archive_url).files("")
    (tmp_path / "archive" / file.path).unlink()

    with pytest.raises(BackupError, match="archive verify"):
        await backed_up(source, tmp_path / "backup")

    assert not (tmp_path / "backup").exists()


async def test_files_deleted_by_retention_meanwhile_are_left_out(source, tmp_path, monkeypatch):
    """The file is deleted after Postgres lists it and before it is copied."""
    async with open_storage(source) as storage:
        await with_history(storage, source)
    copy = archive_files.copy_named

    def copy_late(root, paths, database_url, part):
        [file] = root.files("")
        with psycopg.connect(database_url) as connection:
            connection.execute("delete from archive_files")
        root.delete(file.path)
        copy(root, paths, database_url, part)

    monkeypatch.setattr(backup, "copy_named", copy_late)

    manifest = await backed_up(source, tmp_path / "backup")

    assert manifest.archived == 0


async def test_unmounted_archive_fails_backup(source, tmp_path):
    async with open_storage(source) as storage:
        await with_history(storage, source)
    (tmp_path / "archive").rename(tmp_path / "elsewhere")

    with pytest.raises(StorageUnavailable):
        await backed_up(source, tmp_path / "backup")


async def test_backup_with_archive_requires_archive_url(source, target, tmp_path):
    nowhere = target.model_copy(update={"archive_url": None})
    async with open_storage(source) as storage:
        await with_history(storage, source)
    await backed_up(source, tmp_path / "backup")

    with pytest.raises(ArchiveOff):
        await restored(nowhere, tmp_path / "backup")
    with pytest.raises(ArchiveOff):
        await backed_up(source.model_copy(update={"archive_url": None}), tmp_path / "other")

    await restored(target, tmp_path / "backup")  # nothing was written before
